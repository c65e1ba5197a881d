import { afterAll, beforeAll, expect, test } from "vitest";
import { commandOf, pssBytes, readTree } from "../bench/processes.ts";
import { median } from "../bench/samples.ts";
import { type LendScene, startLendScene } from "../support/lend-scene.ts";
import { LiveClient } from "../support/live-client.ts";
import { openSlowLink } from "../support/slow-link.ts";

const minutes = Number(process.env.MINUTES ?? 10);

/** Bytes. The pictures that the slow one is not sent in two minutes are more than that. */
const mostGrowth = 24 * 2 ** 20;

let scene: LendScene;
beforeAll(async () => {
  scene = await startLendScene();
}, 120_000);
afterAll(() => scene?.[Symbol.asyncDispose](), 60_000);

test(
  `one behind 100 kbit/s for ${minutes} minutes is held no memory for, and delays nobody`,
  async () => {
    const session = await scene.open();
    await scene.rest(`${session}/navigate`, { url: scene.site.url("/noisy.html") });
    const { body: link } = await scene.rest(`${session}/view-links`, { control: true });
    const key = new URL(link.url).hash.slice(1);
    const gateway = scene.service.gateway.pid ?? 0;
    const worker = readTree(gateway).find(({ pid }) => commandOf(pid).includes("workers/main.ts"))?.pid ?? 0;
    await using line = await openSlowLink(Number(new URL(scene.service.url).port), 0, 12_500);
    using slow = await LiveClient.join(`http://127.0.0.1:${line.port}`, key);
    await slow.see();
    using brisk = await LiveClient.join(scene.service.url, key);
    await brisk.see();
    brisk.send({ take_control: {} });
    await brisk.hear(({ state }) => state?.control.state === "human_control");

    const memory: { gateway: number; worker: number }[] = [];
    let [pressed, seenByBrisk, seenBySlow, bytes] = [0, 0, 0, 0];
    for (const end = Date.now() + minutes * 60_000; Date.now() < end; ) {
      const at = { x: 10 + (pressed % 500), y: 300 };
      brisk.send({ input: { events: ["pointer_down", "pointer_up"].map((kind) => ({ kind, ...at })) } });
      pressed += 1;
      await brisk.hear(({ input }) => input?.accepted === 2 * pressed);
      const before = brisk.frames.at(-1)?.sequence ?? 0n;
      await brisk.see(({ sequence }) => sequence >= before + 10n);
      memory.push({ gateway: pssBytes(gateway), worker: pssBytes(worker) });
      for (const { data } of brisk.frames.splice(0, brisk.frames.length - 1)) {
        seenByBrisk += 1;
        bytes += data.length;
      }
      seenBySlow += slow.frames.splice(0).length;
      brisk.heard.splice(0, brisk.heard.length - 1);
    }
    const fifth = Math.ceil(memory.length / 5);
    const growthOf = (process: "gateway" | "worker"): number => {
      const all = memory.map(({ [process]: bytes }) => bytes);
      return median(all.slice(-fifth)) - median(all.slice(fifth, 2 * fifth));
    };
    const growth = { gateway: growthOf("gateway"), worker: growthOf("worker") };
    console.log({ seenByBrisk, seenBySlow, bytes, ...growth });
    expect(seenBySlow).toBeGreaterThan(0);
    expect(seenBySlow).toBeLessThan(seenByBrisk / 2);
    expect(bytes).toBeGreaterThan((minutes / 2) * mostGrowth);
    expect(growth.gateway).toBeLessThan(mostGrowth);
    expect(growth.worker).toBeLessThan(mostGrowth);
    await scene.rest(session, undefined, { method: "DELETE" });
  },
  minutes * 60_000 + 120_000,
);
