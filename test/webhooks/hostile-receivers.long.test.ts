import { spawn } from "node:child_process";
import { json, text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { hostileIdentity, hostileName, hostilities, startHostile } from "./hostile-receivers.ts";
import type { HostileErrand, HostileOutcome } from "./hostile-sender.ts";
import { startReceiver } from "./receiver.ts";

const atOnce = 500;
const mib = 1_048_576;

/** Sends from a separate process whose environment names a proxy that does not exist. */
async function runErrand(errand: HostileErrand): Promise<HostileOutcome> {
  const proxies = { NODE_USE_ENV_PROXY: "1", HTTPS_PROXY: "http://127.0.0.1:1", HTTP_PROXY: "http://127.0.0.1:1" };
  const program = new URL("./hostile-sender.ts", import.meta.url).pathname;
  const child = spawn(process.execPath, ["--no-warnings", program], { env: { ...process.env, ...proxies } });
  child.stdin.end(JSON.stringify(errand));
  const complaints = text(child.stderr);
  // Typed here: the program writes this shape.
  const outcome = await json(child.stdout).catch(async () => Promise.reject(new Error(await complaints)));
  return outcome as HostileOutcome;
}

test("500 concurrent hostile receivers end after 15 s and use less than 32 MiB", { timeout: 300_000 }, async () => {
  const kinds = Object.values(hostilities);
  const ports = await Promise.all(kinds.map(startHostile));
  const sound = await startReceiver(undefined, hostileIdentity);
  const urlOf = (port: number | undefined, index: number) => `https://${hostileName}:${port}/${index}`;
  const { before, max, answers } = await runErrand({
    ca: hostileIdentity.cert,
    sound: urlOf(sound.port, 0),
    hostile: Array.from({ length: atOnce }, (_, index) => urlOf(ports[index % ports.length], index)),
  });
  const kindOf = (index: number) => kinds[index % kinds.length];
  // The received part of a body depends on timing and is tested elsewhere.
  const withoutBody = ({ status, error }: { status?: number; error?: string }) => ({ status, error });
  expect(answers.map(withoutBody)).toEqual(answers.map((_, index) => withoutBody(kindOf(index)?.becomes ?? {})));
  expect(Math.max(...answers.map(({ durationMs }) => durationMs))).toBeLessThan(17_000);
  expect((max - before) / mib).toBeLessThan(32);
});

test("500 concurrent silent receivers use less than 32 MiB", { timeout: 300_000 }, async () => {
  const silent = hostilities["never responds"];
  if (!silent) throw new Error("no receiver is silent");
  const port = await startHostile(silent);
  const sound = await startReceiver(undefined, hostileIdentity);
  const { before, max, answers } = await runErrand({
    ca: hostileIdentity.cert,
    sound: `https://${hostileName}:${sound.port}/`,
    hostile: Array.from({ length: atOnce }, (_, index) => `https://${hostileName}:${port}/${index}`),
  });
  expect(new Set(answers.map(({ error }) => error))).toEqual(new Set(["timeout"]));
  expect((max - before) / mib).toBeLessThan(32);
});
