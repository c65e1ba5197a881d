import { expect, test } from "vitest";
import { encodeText, escapeAttribute } from "../../workers/driver/capture/text-parts.ts";

const mib = 2 ** 20;

/** Counts the turns of the event loop while a promise is pending. */
async function turnsWithin(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  let immediate = setImmediate(function count() {
    turns += 1;
    immediate = setImmediate(count);
  });
  await work;
  clearImmediate(immediate);
  return turns;
}

test("encodes and escapes a long text without blocking others or splitting characters", async () => {
  // Each has two code units and is not aligned to the slices.
  const text = `x${'🚢"&'.repeat(2 * mib)}`;
  const encoded = encodeText(text);
  expect(await turnsWithin(encoded)).toBeGreaterThanOrEqual(7);
  expect(Buffer.concat(await encoded).toString()).toBe(text);
  const escaped = escapeAttribute(text, 64 * mib);
  expect(await turnsWithin(escaped)).toBeGreaterThanOrEqual(7);
  expect(await escaped).toBe(`x${"🚢&quot;&amp;".repeat(2 * mib)}`);
});

test("stops escaping at its limit", async () => {
  await expect(escapeAttribute('"'.repeat(mib), 3 * mib)).rejects.toMatchObject({ slug: "driver-error" });
});
