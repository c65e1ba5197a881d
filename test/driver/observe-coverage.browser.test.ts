import { afterAll, beforeAll, expect, test } from "vitest";
import { launchComparison, observedPages, type SnapshotComparison } from "../support/aria-comparison.ts";
import { withLong } from "../support/long-test.ts";

let comparison: Awaited<ReturnType<typeof launchComparison>>;

beforeAll(async () => {
  comparison = await launchComparison();
});

afterAll(async () => {
  await comparison?.[Symbol.asyncDispose]();
});

/** Pages of different kinds. The others have the elements of these. */
const ofEachKind = observedPages.filter((name) => /^(table|form|map|calendar|feed)$/.test(name));
const others = observedPages.filter((name) => !ofEachKind.includes(name));

test.each(withLong(ofEachKind, others))(
  "references all that reacts in the view of the page %s",
  { timeout: 60_000 },
  async (name) => {
    const seen: SnapshotComparison[] = [];
    const compare = async () => {
      const compared = await comparison.compare(name, false);
      seen.unshift(compared);
      return compared.lost;
    };
    // A snapshot waits only a second for listeners, which may be too short on a busy machine.
    await expect.poll(compare).toEqual([]);
    const [{ tokens, actionable }] = seen as [SnapshotComparison];
    expect(actionable).toBeGreaterThan(10);
    expect(tokens.ours / tokens.theirs).toBeLessThanOrEqual(0.7);
  },
);
