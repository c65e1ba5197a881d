import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";

/** Asks for ports when it is told to, says which they are, and stays for as long as it may be told. */
const program = `
  const { freePorts } = await import("${new URL("free-port.ts", import.meta.url)}");
  process.on("message", async (names) => process.send(Object.values(await freePorts(...names))));
  process.send("ready");
`;

function start(): ChildProcess {
  const options = ["--input-type=module", "--eval", program];
  const child = spawn(process.execPath, options, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

test("no two processes that run at once are given the same port", async () => {
  const children = [start(), start(), start()];
  await Promise.all(children.map((child) => once(child, "message")));
  const names = Array.from({ length: 200 }, (_, index) => String(index));
  const given = await Promise.all(
    children.map(async (child): Promise<number[]> => {
      child.send(names);
      const [ports] = await once(child, "message");
      return ports;
    }),
  );
  const all = given.flat();
  expect(all).toHaveLength(children.length * names.length);
  expect(new Set(all).size).toBe(all.length);
});
