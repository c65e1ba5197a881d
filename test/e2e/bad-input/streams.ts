import { once } from "node:events";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { countOpenStreams, openEvents, openEverywhere } from "../support/open-streams.ts";
import type { GetScene } from "./scene.ts";

const maxPerSession = 16;

/** Streams beyond the limit, and invalid commands on streams. */
export function streamTests(scene: GetScene): void {
  test("a failed command on a WebSocket returns a problem, which lists field errors only if there are any", async () => {
    const { service, sessionId } = scene();
    const client = new WebSocket(`${service.url.replace("http", "ws")}/v1/sessions/${sessionId}/drive`, {
      headers: { authorization: `Bearer ${service.key}` },
    });
    const errors = new Map<string, object>();
    client.on("message", (data) => {
      const { id, error } = JSON.parse(data.toString());
      if (error) errors.set(id, error);
    });
    await once(client, "open");
    client.send(JSON.stringify({ id: "1" }));
    client.send(JSON.stringify({ id: "2", navigate: { url: "about:blank", page_id: "page_99" } }));
    client.send("5");
    client.send(JSON.stringify({ end: true }));
    const [code] = await once(client, "close");
    expect([code, [...errors.keys()]]).toEqual([1000, ["1", "2", ""]]);
    expect(errors.get("1")).toMatchObject({ status: 400, errors: [{ field: "body" }] });
    expect(errors.get("2")).toMatchObject({ status: 404 });
    expect(errors.get("2")).not.toHaveProperty("errors");
    expect(errors.get("")).toMatchObject({ status: 400, detail: "body: must be an object" });
  });

  test("a session accepts at most 16 streams, and another one after a stream has ended", async () => {
    const { service, sessionId } = scene();
    const { url, grpcAddress, key, internalUrl } = service;
    const open = (over: AbortController) => openEvents({ url, grpcAddress, key, sessionId, signal: over.signal });
    const all = Array.from({ length: maxPerSession }, () => new AbortController());
    const streams = await Promise.all(all.map(open));
    for (const { ended } of streams) ended.catch(() => undefined);
    await expect.poll(() => countOpenStreams(internalUrl)).toBe(maxPerSession);

    expect(await (await open(new AbortController())).ended).toBe("tier-limit");
    const beyond = new AbortController();
    const others = await openEverywhere({ url, grpcAddress, key, sessionId, signal: beyond.signal });
    const slugs = await Promise.all(others.map(async ({ transportName, ended }) => [transportName, await ended]));
    expect(slugs.filter(([, slug]) => slug !== "tier-limit")).toEqual([]);
    beyond.abort();

    all[0]?.abort();
    await expect.poll(() => countOpenStreams(internalUrl)).toBe(maxPerSession - 1);
    const again = new AbortController();
    (await open(again)).ended.catch(() => undefined);
    await expect.poll(() => countOpenStreams(internalUrl)).toBe(maxPerSession);
    for (const over of [...all, again]) over.abort();
    await expect.poll(() => countOpenStreams(internalUrl)).toBe(0);
  });
}
