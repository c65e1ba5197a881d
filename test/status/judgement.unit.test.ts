import { expect, test } from "vitest";
import type { Health } from "../../src/status/components.ts";
import { type ComponentState, componentHealth, type Facts, paceOf, step } from "../../src/status/judgement.ts";
import { createSources } from "../../src/status/sources.ts";
import { ownProbe } from "../../src/status/tally.ts";

const pace = paceOf();

/** Health of a component after each of some samples, ten seconds apart. */
function course(...looks: readonly Health[]): Health[] {
  let state: ComponentState | undefined;
  return looks.map((check, index) => {
    state = step(state, check, index * pace.every, pace);
    return state.health;
  });
}

const [ok, slow, some, all] = ["operational", "degraded", "partial_outage", "major_outage"] as const;

test("a fault is shown at its second sample, and its end at the third healthy sample", () => {
  expect(course(ok, all, all, all, ok, ok, ok)).toEqual([ok, ok, all, all, all, all, ok]);
  expect(course(all, all)).toEqual([ok, all]);
});

test("a single sample starts and ends no fault", () => {
  expect(course(ok, all, ok, all, ok, slow, ok)).toEqual(Array(7).fill(ok));
  expect(course(all, all, ok, ok, all, ok, ok, all)).toEqual([ok, all, all, all, all, all, all, all]);
});

test("samples of several gateways within an interval start no fault", () => {
  const first = step(undefined, all, 0, pace);
  expect(step(first, all, pace.every / 2, pace).health).toBe(ok);
});

test("a change among faults first takes the health nearest to the previous one", () => {
  expect(course(ok, some, slow, all, all, all)).toEqual([ok, ok, slow, slow, all, all]);
  expect(course(all, all, ok, slow, some, ok, slow, ok)).toEqual([ok, all, all, all, some, some, some, slow]);
});

const facts = (total: number, failed: number, seenBy: readonly string[]): Facts => ({
  components: ["api"],
  findings: [],
  outcomes: [{ component: "api", total, failed, seenBy }],
});

test("failures count by their share across gateways, after three accounts or a probe have failed", () => {
  const check = (...all: readonly Facts[]): Health => componentHealth("api", all, 0);
  expect(check(facts(100, 100, ["a", "b"]))).toBe(ok);
  expect(check(facts(100, 100, ["a", "b"]), facts(100, 1, ["b"]))).toBe(ok);
  expect(check(facts(100, 100, ["a", "b"]), facts(100, 1, ["c"]))).toBe(all);
  expect(check(facts(100, 10, ["a", "b", "c"]))).toBe(some);
  expect(check(facts(100, 10, ["a", "b", "c"]), facts(300, 0, []))).toBe(slow);
  expect(check(facts(100, 1, ["a", "b", "c"]))).toBe(ok);
  expect(check(facts(1, 1, [ownProbe]))).toBe(all);
});

test("a silent gateway degrades only the API", () => {
  expect(componentHealth("api", [facts(10, 0, [])], 1)).toBe(slow);
  expect(componentHealth("sessions", [facts(10, 0, [])], 1)).toBe(ok);
});

test("a source that fails or hangs is a fault of its component, which is not shown without sources", async () => {
  const sources = createSources();
  const aborted = Promise.withResolvers<void>();
  sources.watch({ component: "billing", check: () => Promise.reject(new Error("away")) });
  sources.watch({
    component: "live_view",
    failing: slow,
    check: (signal) => new Promise(() => signal.addEventListener("abort", () => aborted.resolve())),
  });
  sources.watch({ component: "webhooks", check: async () => ok });
  // A component without results is not shown, whatever its requests count.
  sources.watch({ component: "sessions", check: async () => undefined });
  sources.tally("sessions");
  sources.tally("api").note(true, "acc_1");
  const seen = await sources.check(50);
  await aborted.promise;
  expect(seen).toEqual({
    components: ["api", "live_view", "webhooks", "billing"],
    findings: [
      { component: "billing", health: all },
      { component: "live_view", health: slow },
    ],
    outcomes: [{ component: "api", total: 1, failed: 1, seenBy: ["acc_1"] }],
  });
  // Two samples report it, the third does not.
  expect((await sources.check(50)).outcomes).toHaveLength(1);
  expect((await sources.check(50)).outcomes).toEqual([]);
});
