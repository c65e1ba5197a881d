import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { BrowserRuntime } from "../../src/platform/browsers/browser-paths.ts";
import { type BrowserProcess, launchBrowser } from "../../workers/isolation/browser-process.ts";
import { confineCommand } from "../../workers/isolation/confinement.ts";
import { diskUsage } from "../../workers/isolation/disk-usage.ts";
import { findProcesses, homeOf, networkNamespaceOf, readProcess } from "../../workers/isolation/processes.ts";
import type { Slot } from "../../workers/isolation/slot.ts";
import { SlotPool } from "../../workers/isolation/slot-pool.ts";
import { withLong } from "../support/long-test.ts";
import { playwrightOf } from "../support/playwright-of.ts";
import { executables, isRoot, keepingLog, runtimes } from "./world.ts";

const log = keepingLog();
const isolations = ["namespace", "flags"] as const;

async function startPool(isolation: "namespace" | "flags", size = 3): Promise<SlotPool> {
  const pool = new SlotPool({ size, executables, log, ...(isolation === "flags" ? { isolation } : {}) });
  await pool.start();
  return pool;
}

function take(pool: SlotPool): Slot {
  const slot = pool.acquire();
  if (!slot) throw new Error("the pool has no free slot");
  onTestFinished(() => slot.release());
  return slot;
}

/** Starts a command as an escaped page could: in the slot, in its own process session. */
async function startStray(slot: Slot, stray: readonly string[], more: Record<string, string> = {}): Promise<void> {
  const [command = "", ...parameters] = [...(await slot.ready).confine, "setsid", ...stray];
  const env = { PATH: process.env.PATH, HOME: slot.directory, ...more };
  const child = spawn(command, parameters, { stdio: "ignore", cwd: "/", env });
  onTestFinished(() => void child.kill("SIGKILL"));
}

/** Runs a command in a slot and waits for its exit. */
async function runAsSlot(slot: Slot, inside: readonly string[]): Promise<void> {
  const [command = "", ...parameters] = [...(await slot.ready).confine, ...inside];
  const env = { PATH: process.env.PATH, HOME: slot.directory };
  await once(spawn(command, parameters, { stdio: "ignore", cwd: "/", env }), "exit");
}

async function pidsOf({ browserSession }: BrowserProcess): Promise<Map<number, string>> {
  const { processInfo } = await browserSession.send("SystemInfo.getProcessInfo");
  return new Map(processInfo.map(({ id, type }) => [id, type]));
}

function statusOf(pid: number): Record<string, string> {
  const lines = readFileSync(`/proc/${pid}/status`, "utf8").trim().split("\n");
  return Object.fromEntries(lines.map((line) => line.split(":\t") as [string, string]));
}

/** Finds all live processes of a slot, independently of the code under test. */
function livingIn(slot: Slot, pids: Iterable<number> = []): number[] {
  const known = new Set(pids);
  return findProcesses(({ pid, uid }) =>
    slot.uid === undefined ? known.has(pid) || homeOf(pid) === slot.directory : uid === slot.uid,
  ).map(({ pid }) => pid);
}

describe.each(isolations)("with %s", (isolation) => {
  const tested = isolation === "namespace" ? runtimes : withLong<BrowserRuntime>(["headless-shell"], ["chromium"]);
  const abortedAfter = isolation === "namespace" ? withLong([0, 30, 150], [5, 80]) : withLong([30], [0, 5, 80, 150]);
  let pool: SlotPool;

  beforeAll(async () => {
    pool = await startPool(isolation);
  });

  afterAll(() => pool.stop());

  test.each(tested)(
    "%s runs sandboxed, unprivileged and without the worker's environment until released",
    async (runtime) => {
      process.env.SECRET_OF_THE_WORKER = "hidden";
      onTestFinished(() => void delete process.env.SECRET_OF_THE_WORKER);
      expect([pool.isolation, pool.sandbox]).toEqual([isolation, "namespaces"]);
      const free = pool.free;
      const slot = take(pool);
      const launched = await launchBrowser(slot, { runtime, signal: AbortSignal.timeout(30_000) });
      await (await (await playwrightOf(launched)).newPage()).setContent("<p>hello");
      const pids = await pidsOf(launched);
      const browser = [...pids].find(([, type]) => type === "browser")?.[0] ?? 0;
      const renderers = [...pids].filter(([, type]) => type === "renderer").map(([pid]) => pid);
      expect(renderers.length).toBeGreaterThan(0);
      // A spare renderer that has just started has no page and is not sandboxed yet.
      for (const renderer of renderers) await expect.poll(() => statusOf(renderer).Seccomp).toBe("2");
      for (const pid of pids.keys()) {
        const uid = slot.uid ?? process.getuid?.();
        expect(statusOf(pid)).toMatchObject({ Uid: Array(4).fill(uid).join("\t"), NoNewPrivs: "1" });
      }
      expect(statusOf(browser).CapEff).toBe("0000000000000000");
      const environment = readFileSync(`/proc/${browser}/environ`, "utf8");
      expect(environment).toContain(`HOME=${slot.directory}`);
      expect(environment).not.toMatch(/SECRET_OF_THE_WORKER|PILOTHOUSE/);
      const own = networkNamespaceOf(process.pid);
      // An ordinary user cannot read the namespaces of renderers, which are in an additional namespace of Chromium.
      const visible = [...pids.keys()].filter((pid) => networkNamespaceOf(pid) !== undefined);
      expect(visible).toContain(browser);
      if (isolation === "namespace") expect(visible.map(networkNamespaceOf)).not.toContain(own);
      else expect(networkNamespaceOf(browser)).toBe(own);

      // The slot is free when all processes and files are gone.
      const left = join(slot.directory, "left by the session");
      writeFileSync(left, "something");
      expect(livingIn(slot, pids.keys()).length).toBeGreaterThan(1);
      expect(pool.free).toBe(free - 1);
      await slot.release();
      expect(livingIn(slot, pids.keys())).toEqual([]);
      expect(existsSync(left)).toBe(false);
      expect(pool.free).toBe(free);
      expect(await launched.exited).toEqual({ reason: "killed" });
    },
  );

  test("a release kills processes that left the browser's process session", async () => {
    const slot = take(pool);
    await startStray(slot, ["sleep", "600"]);
    await expect.poll(() => livingIn(slot)).toHaveLength(1);
    await slot.release();
    expect(livingIn(slot)).toEqual([]);
  });

  test.each(tested)("a %s killed externally counts as crashed", async (runtime) => {
    const launched = await launchBrowser(take(pool), { runtime, signal: AbortSignal.timeout(30_000) });
    const [browser = 0] = [...(await pidsOf(launched))].find(([, type]) => type === "browser") ?? [];
    process.kill(browser, "SIGKILL");
    expect(await launched.exited).toEqual({ reason: "crashed" });
  });

  test.each(abortedAfter)("a launch aborted after %i ms leaves nothing", async (delayMs) => {
    const slot = take(pool);
    await slot.ready;
    const reason = new Error("no longer needed");
    const controller = new AbortController();
    setTimeout(() => controller.abort(reason), delayMs);
    await expect(launchBrowser(slot, { runtime: "chromium", signal: controller.signal })).rejects.toBe(reason);
    expect(livingIn(slot)).toEqual([]);
  });

  test("a launch that times out leaves nothing", async () => {
    const slot = take(pool);
    await expect(launchBrowser(slot, { runtime: "chromium", signal: AbortSignal.timeout(60) })).rejects.toThrow(
      "timeout",
    );
    expect(livingIn(slot)).toEqual([]);
  });

  test("a failed launch reports its cause and leaves nothing", async () => {
    const slot = { ...take(pool), executables: { chromium: "/nonexistent/chromium" } };
    await expect(launchBrowser(slot, { runtime: "chromium", signal: AbortSignal.timeout(30_000) })).rejects.toThrow(
      "/nonexistent/chromium",
    );
    await expect(
      launchBrowser(slot, { runtime: "headless-shell", signal: AbortSignal.timeout(30_000) }),
    ).rejects.toThrow("no browser for");
    expect(livingIn(slot)).toEqual([]);
  });

  test("browsers start concurrently in separate slots, up to the number of slots", async () => {
    const slots = [take(pool), take(pool), take(pool)];
    expect(pool.acquire()).toBeUndefined();
    const signal = AbortSignal.timeout(30_000);
    const browsers = await Promise.all(
      slots.map((slot, index) => launchBrowser(slot, { runtime: runtimes[index % 2] ?? "chromium", signal })),
    );
    const titles = browsers.map(async (browser, index) => {
      const page = await (await playwrightOf(browser)).newPage();
      await page.setContent(`<title>${index}</title>`);
      return page.title();
    });
    expect(await Promise.all(titles)).toEqual(["0", "1", "2"]);
    expect(new Set(slots.map(({ directory }) => directory)).size).toBe(3);
  });
});

// The slots of an ordinary user share one uid, so only processes that can be listed are killed.
if (isRoot) {
  test.each(["scratch", "storage"])("a pool does not start if its slots cannot reach their %s", async (what) => {
    const place = mkdtempSync(join(tmpdir(), "private-"));
    onTestFinished(() => rmSync(place, { recursive: true }));
    const pool = new SlotPool({ size: 1, executables, log, [what]: place });
    onTestFinished(() => pool.stop());
    await expect(pool.start()).rejects.toThrow(`browsers cannot write in ${place}`);
  });

  test("a release kills processes that change their pid faster than they can be listed", async () => {
    const pool = await startPool("namespace");
    onTestFinished(() => pool.stop());
    const slot = take(pool);
    const place = mkdtempSync(join(tmpdir(), "hop-"));
    onTestFinished(() => rmSync(place, { recursive: true }));
    chmodSync(place, 0o777);
    const beat = join(place, "beat");
    await startStray(slot, ["sh", "-c", 'eval "$HOP"'], { HOP: `echo >> ${beat}; sh -c 'eval "$HOP"' &` });
    const beats = () => (existsSync(beat) ? statSync(beat).size : 0);
    await expect.poll(beats).toBeGreaterThan(20);
    await slot.release();
    const last = beats();
    await delay(200);
    expect(beats()).toBe(last);
  });
}

test("slots of one worker and of two workers cannot access each other", async () => {
  const pools = await Promise.all([startPool("namespace"), startPool("namespace")]);
  onTestFinished(() => Promise.all(pools.map((pool) => pool.stop())).then(() => undefined));
  const slots = pools.flatMap((pool) => [take(pool), take(pool)]);
  const entrances = await Promise.all(slots.map(({ ready }) => ready));
  expect(new Set(slots.map(({ directory }) => directory)).size).toBe(4);
  expect(new Set(entrances.map(({ confine }) => namespaceOf(confine))).size).toBe(4);
  expect(new Set(slots.map(({ uid }) => uid)).size).toBe(isRoot ? 4 : 1);
  for (const slot of slots) {
    for (const which of ["directory", "storage"] as const) {
      const { uid, mode } = statSync(slot[which]);
      expect([uid, mode & 0o007]).toEqual([process.getuid?.(), 0]);
      for (const other of slots) {
        const readable = isRoot && canList(slot, other[which]);
        expect(readable).toBe(isRoot && slot === other);
      }
    }
  }
});

/** Lists a directory as the slot's uid without namespaces, so that only file permissions protect it. */
function canList(slot: Slot, directory: string): boolean {
  const [command = "", ...parameters] = [...confineCommand([], slot.uid, "namespaces"), "ls", directory];
  return spawnSync(command, parameters).status === 0;
}

function namespaceOf(confine: readonly string[]): string {
  const [command = "", ...parameters] = [...confine, "readlink", "/proc/self/ns/net"];
  return spawnSync(command, parameters, { encoding: "utf8" }).stdout;
}

/** Nests directories until the path exceeds the kernel's limit, and removes the permissions of each. */
const dig = `
const { chmodSync, mkdirSync } = require("node:fs");
process.chdir(process.env.HOME);
mkdirSync("shut/inside", { recursive: true });
chmodSync("shut", 0);
for (let depth = 0; depth < 30; depth += 1) {
  mkdirSync("d".repeat(200));
  process.chdir("d".repeat(200));
}
`;

test("a slot is released even if its directory cannot be listed, which exceeds the disk bound", async () => {
  const pool = await startPool("namespace");
  onTestFinished(() => pool.stop());
  const slot = take(pool);
  await runAsSlot(slot, [process.execPath, "--eval", dig]);
  expect(await diskUsage([slot.directory], 2 ** 30)).toBeGreaterThan(2 ** 30);
  await slot.release();
  expect(existsSync(join(slot.directory, "shut"))).toBe(false);
});

test("a directory that its browser has made unreadable does not hide files from the disk bound", async () => {
  const pool = await startPool("namespace");
  onTestFinished(() => pool.stop());
  const slot = take(pool);
  const hide = 'cd "$HOME"; mkdir hidden; head -c 4194304 /dev/zero > hidden/large; chmod 0300 hidden';
  await runAsSlot(slot, ["sh", "-c", hide]);
  expect(statSync(join(slot.directory, "hidden/large")).size).toBe(4 * 2 ** 20);
  expect(await diskUsage([slot.directory], 2 ** 20)).toBeGreaterThan(2 ** 20);
});

// As an ordinary user, browsers can move whatever that user may write.
if (isRoot) {
  test("a browser cannot replace its profile, tmp, artifacts or files by a link", async () => {
    const pool = await startPool("namespace");
    onTestFinished(() => pool.stop());
    const slot = take(pool);
    for (const [name, parent] of [
      ["profile", "directory"],
      ["tmp", "directory"],
      ["artifacts", "storage"],
      ["files", "storage"],
    ] as const) {
      const place = join(slot[parent], name);
      const before = readdirSync(slot[parent]);
      await runAsSlot(slot, ["sh", "-c", 'touch "$0/mine"; mv "$0" "$0.old"; rm -r "$0"; ln -sfn /etc "$0"', place]);
      expect(lstatSync(place).isDirectory(), name).toBe(true);
      expect(readdirSync(slot[parent])).toEqual(before);
    }
  });
}

test("a pool prepares the next two slots, and a released slot is the next", async () => {
  const pool = await startPool("namespace", 6);
  onTestFinished(() => pool.stop());
  const slot = take(pool);
  await slot.ready;
  const { directory } = slot;
  const followers = [1, 2, 3, 4, 5].map((by) => directory.replace(/\d+$/, (number) => `${Number(number) + by}`));
  const prepared = () => followers.map((path) => existsSync(path));
  await expect.poll(prepared).toEqual([true, true, false, false, false]);
  await slot.release();
  const next = take(pool);
  expect(next.directory).toBe(directory);
  await next.ready;
  expect(prepared()).toEqual([true, true, false, false, false]);
});

test("stopping a pool ends its sessions and removes all directories", async () => {
  const pool = await startPool("namespace");
  const slot = take(pool);
  const launched = await launchBrowser(slot, { runtime: "headless-shell", signal: AbortSignal.timeout(30_000) });
  const pids = [...(await pidsOf(launched)).keys()];
  await pool.stop();
  expect(pids.filter((pid) => readProcess(pid))).toEqual([]);
  expect([slot.directory, slot.storage].filter((path) => existsSync(path))).toEqual([]);
  expect(pool.acquire()).toBeUndefined();
});

test("the tests above log no errors and leave the worker's own network unchanged", () => {
  expect(log.complaints).toEqual([]);
  expect(readlinkSync("/proc/self/ns/net")).toBe(readlinkSync(`/proc/${process.ppid}/ns/net`));
});
