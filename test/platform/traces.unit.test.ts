import { randomBytes } from "node:crypto";
import { afterAll, expect, test } from "vitest";
import { inTraceOf, openSpan } from "../../src/platform/traces/spans.ts";
import { startTracing } from "../../src/platform/traces/tracing.ts";

const identity = { role: "gateway", release: "1.0.0", host: "test" } as const;
const tracing = startTracing({ identity, share: 0, send: async () => true });
afterAll(() => tracing.stop());

const sampled = () => `00-${randomBytes(16).toString("hex")}-${randomBytes(8).toString("hex")}-01`;

/** Returns how many of 10,000 calls are recorded. */
function recorded(traceparent: () => string | undefined): number {
  const spans = Array.from({ length: 10_000 }, () => openSpan(traceparent(), "call", {})?.traceparent ?? "");
  return spans.filter((each) => each.endsWith("-01")).length;
}

test("clients can have a share of their calls recorded, also by reusing one trace", () => {
  expect(recorded(() => undefined)).toBe(0);
  const reused = sampled();
  for (const choose of [sampled, () => reused]) {
    // The mean is 100 and the standard deviation 10.
    expect(recorded(choose)).toBeGreaterThan(30);
    expect(recorded(choose)).toBeLessThan(170);
  }
  expect(recorded(() => sampled().replace(/01$/, "00"))).toBe(0);
});

test("a recorded trace of another process of the service is always continued", async () => {
  for (const traceparent of Array.from({ length: 100 }, sampled))
    expect(await inTraceOf(traceparent, "worker", {}, async (span) => span?.traceparent)).toMatch(/-01$/);
});
