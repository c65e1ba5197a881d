import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const run = promisify(execFile);

test("an uncaught error ends its own connection, is logged and counted, and spares other connections", async () => {
  const script = new URL("faulty-port.ts", import.meta.url).pathname;
  const { stdout } = await run(process.execPath, ["--no-warnings", script], { timeout: 30_000 });
  const logged = Array.from({ length: 7 }, () => "failed to serve a connection");
  expect(JSON.parse(stdout)).toEqual({ ended: 7, served: "served", uncaught: 7, logged });
});
