import { expect, test } from "vitest";
import { readCommand } from "../../workers/lend/client-command.ts";
import { scanMembers } from "../../workers/lend/member-scan.ts";

const scan = (text: string) => {
  const members = scanMembers(Buffer.from(text));
  return members && Object.fromEntries([...members].map(([name, value]) => [name, value.toString().trim()]));
};

test("members are found without looking into them", () => {
  expect(scan("{}")).toEqual({});
  expect(scan(' { "id" : 1 , "method":"A.b","params": {"a":[1,{"id":2}],"b":"}\\"{,\\\\"} ,"sessionId":"S"} ')).toEqual(
    {
      id: "1",
      method: '"A.b"',
      params: '{"a":[1,{"id":2}],"b":"}\\"{,\\\\"}',
      sessionId: '"S"',
    },
  );
});

test("what another reader could take for something else is none", () => {
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
    expect(scan(text), text).toBeUndefined();
  }
});

test("a long command is passed on as it is, and a short one written anew", () => {
  const long = `{"data": "${"x".repeat(70_000)}", "data": 1}`;
  const command = readCommand(Buffer.from(`{"method":"A.b","params":${long},"id":7,"sessionId":"S"}`));
  expect(command).toMatchObject({ id: 7, method: "A.b", sessionId: "S" });
  expect(String(command.params)).toBe(long);
  expect(readCommand(Buffer.from('{"id":1,"method":"A.b","params":{"a":1, "a":2}}')).params).toBe('{"a":2}');
});
