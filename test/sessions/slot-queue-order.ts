import { expect, test } from "vitest";
import type { Deployment } from "../support/deployment.ts";
import { type Rest, restClient } from "../support/rest.ts";

/** Queue of creates over two gateways, of which the second one is killed. */
export function slotQueueTests(deploymentOf: () => Deployment): void {
  test("creates on two gateways wait in one order, and a killed gateway leaves no place", {
    timeout: 120_000,
  }, async () => {
    const deployment = deploymentOf();
    const key = await deployment.createKey("queue", "free");
    const clients = [0, 1].map((index) => restClient({ url: deployment.gateway(index).url, key }));
    const [first, second] = clients as [Rest, Rest];
    await using places = await followPlaces(deployment.gateway(0).url, key);

    /** Begins a create, and resolves when its place is known. */
    const wait = async (rest: Rest) => {
      const before = places.all.length;
      const created = rest("/v1/sessions", { wait_for_slot_ms: 60_000 });
      await expect.poll(() => places.all.length, { timeout: 20_000 }).toBeGreaterThan(before);
      return { created, place: places.all.at(-1)?.queue_place };
    };
    const end = async (id: string) => first(`/v1/sessions/${id}`, undefined, { method: "DELETE" });

    const { body } = await first("/v1/sessions", {});
    const waiting = [await wait(second), await wait(first), await wait(second)];
    expect(waiting.map(({ place }) => place)).toEqual([1, 2, 3]);
    let last = body.id;
    for (const { created } of waiting.slice(0, 2)) {
      await end(last);
      const { status, body: session } = await created;
      expect(status).toBe(201);
      last = session.id;
    }
    waiting[2]?.created.catch(() => undefined);
    await deployment.gateway(1).kill();
    const { created } = await wait(first);
    await end(last);
    expect((await created).status).toBe(201);
  });
}

/** Follows the places of waiting creates over Server-Sent Events. */
async function followPlaces(url: string, key: string) {
  const over = new AbortController();
  const all: { readonly id: string; readonly queue_place: number }[] = [];
  const { body } = await fetch(`${url}/v1/account/watch`, {
    headers: { authorization: `Bearer ${key}` },
    signal: over.signal,
  });
  const read = async (): Promise<void> => {
    let text = "";
    for await (const part of body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += part;
      const frames = text.split("\n\n");
      text = frames.pop() ?? "";
      for (const frame of frames) {
        const notice = JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? "{}");
        if (notice.change === "queued") all.push(notice);
      }
    }
  };
  read().catch(() => undefined);
  return { all, [Symbol.asyncDispose]: async () => over.abort() };
}
