import { expect, test } from "vitest";
import { createLog } from "../../src/platform/log.ts";

test("redacts secrets and typed text two levels deep", () => {
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

test("omits entries below its level", () => {
  const lines: string[] = [];
  createLog("warn", { write: (line) => lines.push(line) }).info("one request more");
  expect(lines).toEqual([]);
});

test("writes short lines to a terminal, with a stack only for errors", () => {
  const lines: string[] = [];
  const log = createLog("info", { isTTY: true, write: (line) => lines.push(line) });
  const secret = "hunter2";
  log.info({ worker: "wrk_1", slots: { free: 2 }, password: secret }, "the worker has registered");
  log.warn({ err: new Error("connection\nrefused") }, "the mail was not\u001b[2J sent");
  log.error({ err: new Error("no such table") }, "the sweep has failed");
  expect(lines).toEqual([
    expect.stringMatching(
      /^\d\d:\d\d:\d\d info {2}the worker has registered worker=wrk_1 slots={"free":2} password=\[redacted\]\n$/,
    ),
    expect.stringMatching(/^\S+ warn {2}the mail was not \[2J sent \(connection refused\)\n$/),
    expect.stringMatching(/^\S+ error the sweep has failed \(no such table\)\n {4}at /),
  ]);
});
