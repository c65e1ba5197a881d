import { afterAll, beforeAll, expect, test } from "vitest";
import { runMoney } from "./money-run.ts";
import { type MoneyScene, startMoneyScene } from "./money-scene.ts";

let scene: MoneyScene;
beforeAll(async () => {
  scene = await startMoneyScene(Date.parse("2026-01-31T12:00:00Z"));
}, 60_000);
afterAll(() => scene?.[Symbol.asyncDispose]());

test("100 random sequences of 60 payment steps match the model to the cent and the millisecond", async () => {
  const steps: Record<string, number> = {};
  let [paidCents, refundedCents, servedMs] = [0, 0, 0];
  for (let seed = 1_000; seed < 1_100; seed += 1) {
    const figures = await runMoney(scene, seed, 60);
    for (const [name, count] of Object.entries(figures.steps)) steps[name] = (steps[name] ?? 0) + count;
    paidCents += figures.paidCents;
    refundedCents += figures.refundedCents;
    servedMs += figures.servedMs;
  }
  console.log(JSON.stringify({ steps, paidCents, refundedCents, servedDays: Math.round(servedMs / 86_400_000) }));
  for (const name of ["settle", "refund", "extend", "dispute", "raise_declined", "lower", "expire", "fail", "cancel"])
    expect([name, (steps[name] ?? 0) > 5]).toEqual([name, true]);
}, 900_000);
