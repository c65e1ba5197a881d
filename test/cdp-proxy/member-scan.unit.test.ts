import { expect, test } from "vitest";
import { readCommand } from "../../workers/cdp-proxy/client-command.ts";
import { scanMembers } from "../../workers/cdp-proxy/member-scan.ts";

const scan = async (text: string) => {
  const members = await scanMembers(Buffer.from(text));
  return members && Object.fromEntries([...members].map(([name, value]) => [name, value.toString().trim()]));
};

test("finds members without parsing their values", async () => {
  expect(await scan("{}")).toEqual({});
  expect(
    await scan(' { "id" : 1 , "method":"A.b","params": {"a":[1,{"id":2}],"b":"}\\"{,\\\\"} ,"sessionId":"S"} '),
  ).toEqual({
    id: "1",
    method: '"A.b"',
    params: '{"a":[1,{"id":2}],"b":"}\\"{,\\\\"}',
    sessionId: '"S"',
  });
});

test("rejects a text that another parser could read differently", async () => {
  for (const text of [
    "",
    "1",
    "[]",
    '"text"',
    "{",
    "}",
    "{}{}",
    '{"a":1}}',
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{"a":1 "b":2}',
    '{"a":{} "b":2}',
    '{"a":{}:2}',
    '{"a":1/**/}',
    '{"a":{"b":/*"*/1}}',
    '{"a":{"b":1//\n}}',
    '{"a":"\\"}',
    "{'a':1}",
    "{a:1}",
  ]) {
    expect(await scan(text), text).toBeUndefined();
  }
});

test("forwards a long command unchanged and rewrites a short one", async () => {
  const long = `{"data": "${"x".repeat(70_000)}", "data": 1}`;
  const command = await readCommand(Buffer.from(`{"method":"A.b","params":${long},"id":7,"sessionId":"S"}`));
  expect(command).toMatchObject({ id: 7, method: "A.b", sessionId: "S" });
  expect(String(command.params)).toBe(long);
  const short = await readCommand(Buffer.from('{"id":1,"method":"A.b","params":{"a":1, "a":2}}'));
  expect(short.params).toBe('{"a":2}');
});

test.each([
  ["numbers", "1,2.5,", "0"],
  ["texts", '"a","b",', '""'],
  ["a text of quotation marks", '\\"', ""],
  ["brackets", "[],", "0"],
])("yields to other work during a long message of %s", async (_name, part, end) => {
  const text = part.startsWith("\\") ? '"' : "";
  const params = `[${text}${part.repeat((4 * 2 ** 20) / part.length)}${end}${text}]`;
  let turns = 0;
  const next = (): void => {
    turns += 1;
    immediate = setImmediate(next);
  };
  let immediate = setImmediate(next);
  const members = await scanMembers(Buffer.from(`{"params":${params}}`));
  clearImmediate(immediate);
  expect(members?.get("params")?.length).toBe(params.length);
  expect(turns).toBeGreaterThanOrEqual(15);
});
