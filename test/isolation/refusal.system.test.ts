import { execFile } from "node:child_process";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { makeDataDirectory } from "../support/database.ts";
import { isRoot, withoutCapability, withoutNamespaces } from "./world.ts";

/** Milliseconds for all startup checks of a worker, which take 2 s on an idle machine. */
const timeout = 60_000;

/** Runs a worker by a wrapper command until it exits. Without a gateway it would otherwise run forever. */
async function runWorker(behind: readonly string[], env: Record<string, string> = {}) {
  const dataDir = await makeDataDirectory();
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const socket = `unix:${join(dataDir, "worker.sock")}`;
  const own = {
    DATA_DIR: dataDir,
    CONTROL: `unix:${join(dataDir, "fleet.sock")}`,
    WORKER_LISTEN: socket,
    WORKER_TOKEN: "0123456789abcdef",
    WORKER_SLOTS: "1",
  };
  const [command = "", ...parameters] = [...behind, process.execPath, "workers/main.ts"];
  const options = { env: { ...process.env, ...own, ...env }, timeout };
  const { promise, resolve } = Promise.withResolvers<{ status: unknown; said: string }>();
  execFile(command, parameters, options, (error, _output, said) => resolve({ status: error?.code, said }));
  return promise;
}

const refusals = [
  ["network namespaces", withoutNamespaces, {}, /cannot create a network namespace.*\nMissing: .*`unshare`/],
  ["user namespaces", withoutNamespaces, { ISOLATION: "flags" }, /cannot enable Chromium's sandbox .*\nMissing: /],
] as const;

const refusalsOfRoot = [
  [
    "CAP_SYS_ADMIN",
    withoutCapability("sys_admin"),
    {},
    /cannot create a network namespace.*\nMissing: .*CAP_SYS_ADMIN/,
  ],
  [
    "CAP_NET_ADMIN",
    withoutCapability("net_admin"),
    {},
    /cannot create a network namespace.*\nMissing: .*CAP_NET_ADMIN/,
  ],
  ["CAP_SETUID", withoutCapability("setuid"), {}, /cannot confine browsers .*\nMissing: .*CAP_SETUID/],
] as const;

test.each(isRoot ? [...refusals, ...refusalsOfRoot] : refusals)(
  "a worker without %s exits with 1 and a message that states the missing privilege and the remedies",
  async (_what, behind, env, expected) => {
    const { status, said } = await runWorker(behind, env);
    expect(status).toBe(1);
    expect(said).toMatch(expected);
    expect(said).toContain("uid 1000");
    expect(said).toContain("CAP_SYS_CHROOT");
    expect(said.match(/does not start/g)).toHaveLength(1);
  },
  timeout,
);
