import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { untilAborted } from "../../gateway/policies/open-streams.ts";
import { waitUntil } from "../../src/platform/bounded-wait.ts";

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

test("an ongoing stream does not retain the messages it has yielded", async () => {
  async function* source(): AsyncGenerator<object> {
    for (;;) yield {};
  }
  const messages = untilAborted(source(), new AbortController().signal);
  const first = await messages.next().then(({ value }) => new WeakRef<object>(value ?? {}));
  for (let count = 0; count < 100; count += 1) await messages.next();
  const isGone = (): boolean => {
    collectGarbage();
    return first.deref() === undefined;
  };
  expect(await waitUntil(isGone, { timeout: 20_000, every: 10 })).toBe(true);
  await messages.return(undefined);
});
