import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { createOutput, type Output } from "../../sdk/cli/src/output.ts";

async function write(isTTY: boolean, use: (output: Output) => unknown): Promise<string> {
  const [stdout, stderr] = [Object.assign(new PassThrough(), { isTTY }), new PassThrough()];
  await use(createOutput({ stdout, stderr }, !isTTY));
  stdout.end();
  return await text(stdout);
}

const hostile = "a\u001b]0;title\u0007\u009b2Jb\nc";

test("removes control characters of foreign text on a terminal, in each form of output", async () => {
  const shown = "a ]0;title  2Jb\nc";
  expect(await write(true, (output) => output.raw(hostile))).toBe(shown);
  expect(await write(true, (output) => output.result({}, hostile))).toBe(`${shown}\n`);
  const items = [{ id: "ses_1", name: hostile, count: undefined }];
  expect(await write(true, (output) => output.table(items, ["id", "name", "count"], "none"))).toBe(
    "ID     NAME               COUNT\nses_1  a ]0;title  2Jb c  -\n",
  );
});

test("shortens long cells of a table on a terminal", async () => {
  const items = [{ id: "key_1", scopes: ["a".repeat(40), "b".repeat(40)] }];
  const shown = await write(true, (output) => output.table(items, ["id", "scopes"], "none"));
  expect(shown.split("\n")[1]).toBe(`key_1  ${"a".repeat(40)},${"b".repeat(18)}…`);
});

test("writes text and JSON unchanged elsewhere", async () => {
  expect(await write(false, (output) => output.raw(hostile))).toBe(hostile);
  expect(JSON.parse(await write(false, (output) => output.result({ hostile }, "")))).toEqual({ hostile });
});
