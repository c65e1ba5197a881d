import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ProxyFailure, tunnelRefused } from "../../workers/egress/proxy-failure.ts";
import { type EgressChange, UpstreamWatch } from "../../workers/egress/upstream-watch.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

function watchOver(verdict: () => Promise<void>) {
  const changes: EgressChange[] = [];
  const probes: number[] = [];
  const watch = new UpstreamWatch({
    onChange: (change) => void changes.push(change),
    probe: () => {
      probes.push(Date.now());
      return verdict();
    },
  });
  return { watch, changes, probes };
}

const silent = () => Promise.reject(new ProxyFailure("timeout", "did not answer"));

test("does not probe a working proxy", async () => {
  const { watch, probes, changes } = watchOver(silent);
  watch.confirm();
  watch.confirm();
  await vi.advanceTimersByTimeAsync(600_000);
  expect(probes).toEqual([]);
  expect(changes).toEqual([{ capability: "verified", reason: "" }]);
});

test("sends one probe after a failure and keeps the state if the probe succeeds", async () => {
  const { watch, probes, changes } = watchOver(() => Promise.reject(tunnelRefused("check.example:443", "HTTP 403")));
  for (let failures = 0; failures < 100; failures += 1) watch.suspect();
  await vi.advanceTimersByTimeAsync(0);
  for (let failures = 0; failures < 100; failures += 1) watch.suspect();
  await vi.advanceTimersByTimeAsync(900);
  expect(probes).toHaveLength(1);
  expect(changes).toEqual([{ capability: "verified", reason: "" }]);
});

test("probes a lost proxy with backoff up to one minute, and stops when closed", async () => {
  const { watch, probes, changes } = watchOver(silent);
  watch.suspect();
  await vi.advanceTimersByTimeAsync(300_000);
  const gaps = probes.slice(1).map((at, index) => (at - (probes[index] ?? 0)) / 1_000);
  expect(gaps).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60]);
  expect(changes).toEqual([{ capability: "lost", reason: "timeout" }]);
  watch.close();
  await vi.advanceTimersByTimeAsync(300_000);
  expect(probes).toHaveLength(10);
});

test("stops probing when traffic succeeds", async () => {
  const { watch, probes, changes } = watchOver(silent);
  watch.suspect();
  await vi.advanceTimersByTimeAsync(5_000);
  watch.confirm();
  const before = probes.length;
  await vi.advanceTimersByTimeAsync(300_000);
  expect(probes).toHaveLength(before);
  expect(changes.map(({ capability }) => capability)).toEqual(["lost", "verified"]);
});
