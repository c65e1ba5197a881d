import { expect, test } from "vitest";
import { createLog } from "../../src/platform/log.ts";

test("should keep secrets and typed text out of the log, two levels down", () => {
  const lines: string[] = [];
  const log = createLog("info", { write: (line) => lines.push(line) });
  const secret = "hunter2";
  log.info({ password: secret, headers: { authorization: secret, cookie: secret, "x-byok-llm-api-key": secret } }, "a");
  log.info({ request: { proxy: { password: secret }, type: { text: secret } } }, "b");
  log.info({ headers: { "set-cookie": [secret], "proxy-authorization": secret }, kept: "plain" }, "c");
  expect(lines).toHaveLength(3);
  expect(lines.join("")).not.toContain(secret);
  expect(lines.join("")).toContain("plain");
});

test("should be quiet below its level", () => {
  const lines: string[] = [];
  createLog("warn", { write: (line) => lines.push(line) }).info("one request more");
  expect(lines).toEqual([]);
});
