import { expect, test } from "vitest";
import { countOpenStreams, openEvents, openEverywhere } from "../support/open-streams.ts";
import type { GetScene } from "./scene.ts";

const mostOfASession = 16;

/** More streams than there may be. */
export function streamTests(scene: GetScene): void {
  test("a session has at most 16 streams, and another when one of them has gone", async () => {
    const { service, sessionId } = scene();
    const { url, grpcAddress, key, internalUrl } = service;
    const open = (over: AbortController) => openEvents({ url, grpcAddress, key, sessionId, signal: over.signal });
    const all = Array.from({ length: mostOfASession }, () => new AbortController());
    const streams = await Promise.all(all.map(open));
    for (const { ended } of streams) ended.catch(() => undefined);
    await expect.poll(() => countOpenStreams(internalUrl)).toBe(mostOfASession);

    expect(await (await open(new AbortController())).ended).toBe("tier-limit");
    const beyond = new AbortController();
    const others = await openEverywhere({ url, grpcAddress, key, sessionId, signal: beyond.signal });
    const slugs = await Promise.all(others.map(async ({ door, ended }) => [door, await ended]));
    expect(slugs.filter(([, slug]) => slug !== "tier-limit")).toEqual([]);
    beyond.abort();

    all[0]?.abort();
    await expect.poll(() => countOpenStreams(internalUrl)).toBe(mostOfASession - 1);
    const again = new AbortController();
    (await open(again)).ended.catch(() => undefined);
    await expect.poll(() => countOpenStreams(internalUrl)).toBe(mostOfASession);
    for (const over of [...all, again]) over.abort();
    await expect.poll(() => countOpenStreams(internalUrl)).toBe(0);
  });
}
