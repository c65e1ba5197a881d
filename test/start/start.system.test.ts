import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { isRoot, withoutCapability, withoutNamespaces } from "../isolation/world.ts";
import { longTest, withLong } from "../support/long-test.ts";
import { clearGround, type Ground, makeGround, StartedProject } from "./started-project.ts";

const gateway = [process.execPath, "gateway/main.ts"];

async function groundOfTest(hasCluster = false): Promise<Ground> {
  const ground = await makeGround(hasCluster);
  onTestFinished(() => clearGround(ground));
  return ground;
}

function start(ground: Ground, ...how: [command?: readonly string[], env?: Record<string, string>]): StartedProject {
  const project = new StartedProject(ground, ...how);
  onTestFinished(() => project.stop());
  return project;
}

/** Occupies a port before the service listens on it. */
async function occupied(port: string | undefined): Promise<AsyncDisposable> {
  const server = createServer().listen(Number(port), "127.0.0.1");
  await once(server, "listening");
  return server;
}

longTest(
  "a start with opt-outs from isolation reports them, ignores a stale record, and refuses a second instance",
  async () => {
    const ground = await groundOfTest();
    const record = join(ground.dataDir, "running.json");
    // As if the pid of an ended service had been reused since then.
    writeFileSync(record, JSON.stringify({ pid: process.pid, started: "1", url: "http://localhost:1" }));
    const first = start(ground, gateway, { ISOLATION: "flags", BROWSER_SANDBOX: "off" });
    await first.pasteLines();
    expect(first.printed).toMatch(/Weaker isolation .*\(ISOLATION=flags\).*\(BROWSER_SANDBOX=off\)\n/);
    const workerLog = readFileSync(join(ground.dataDir, "worker.log"), "utf8");
    expect(workerLog).toContain('"isolation":"flags","browser_sandbox":"off"');
    expect(workerLog).toContain("pages are confined by browser flags only (ISOLATION=flags)");

    const { pid } = JSON.parse(readFileSync(record, "utf8"));
    expect(pid).not.toBe(process.pid);
    const other = await groundOfTest();
    const second = start(other, gateway, { DATA_DIR: ground.dataDir, LOG_LEVEL: "error" });
    expect(await second.ended()).toBe(1);
    expect(second.printed).toBe(
      `pilothouse: Pilothouse is already running at http://localhost:${ground.env.PORT} with this DATA_DIR, pid ${pid}. ` +
        "For a second one set DATA_DIR, PORT, GRPC_PORT and INTERNAL_PORT\n",
    );
    const answer = await fetch(`http://127.0.0.1:${ground.env.INTERNAL_PORT}/readyz`);
    expect(answer.status).toBe(200);
    first.signal("SIGTERM");
    expect(await first.ended()).toBe(0);
    expect(existsSync(record)).toBe(false);
  },
  120_000,
);

test.each(withLong(["INTERNAL_PORT"], ["PORT", "GRPC_PORT"]))(
  "a port in use for %s is refused with a message that names the variable",
  async (name) => {
    const ground = await groundOfTest();
    await using _ = await occupied(ground.env[name]);
    const project = start(ground, gateway, { LOG_LEVEL: "error" });
    expect(await project.ended()).toBe(1);
    expect(project.printed).toBe(
      `pilothouse: port ${ground.env[name]} is in use: stop the program that listens there, or set ${name}\n`,
    );
    expect(project.leftovers()).toEqual([]);
    expect(readdirSync(ground.dataDir)).toEqual([]);
  },
  120_000,
);

test("a port set by two of the service's variables is refused with both names", async () => {
  const ground = await groundOfTest();
  const { PORT = "" } = ground.env;
  const project = start(ground, gateway, { GRPC_PORT: PORT });
  expect(await project.ended()).toBe(1);
  expect(project.printed).toBe(
    `pilothouse: port ${PORT} is in use: stop the program that listens there, or set PORT or GRPC_PORT\n`,
  );
}, 60_000);

test.for([
  ["is a file", "/dev/null", "EEXIST"],
  ["is on a read-only virtual file system", "/proc/pilothouse", "ENOENT"],
] as const)("a DATA_DIR that %s is refused with a message", { timeout: 60_000 }, async ([, DATA_DIR, code]) => {
  const project = start(await groundOfTest(), gateway, { DATA_DIR });
  expect(await project.ended()).toBe(1);
  expect(project.printed).toMatch(new RegExp(`^pilothouse: DATA_DIR cannot be used: ${code}: .*\n$`));
});

longTest(
  "a start without namespaces ends with the worker's message and is not retried",
  async () => {
    const without = isRoot ? withoutCapability("sys_admin") : withoutNamespaces;
    const project = start(await groundOfTest(), [...without, ...gateway], { LOG_LEVEL: "fatal" });
    expect(await project.ended()).toBe(1);
    expect(project.printed).toMatch(/^pilothouse: the worker does not start: cannot create a network namespace/);
    expect(project.printed).toContain("ISOLATION=flags");
    expect(project.leftovers()).toEqual([]);
  },
  120_000,
);

/** Sends SIGTERM, and expects an orderly end. */
async function expectOrderlyEnd(project: StartedProject, terminate: () => void): Promise<void> {
  terminate();
  expect(await project.ended()).toBe(0);
  // The service may be ready before the signal arrives. It must not print errors, except that PostgreSQL was too slow
  // on a busy machine. `npm start` prints the steps of a set-up that the checkout needs.
  const isFault = (line: string) =>
    /^pilothouse:(?!.* \.\.\. \d+ s$)|"level":[456]0|^ {4}at /.test(line) &&
    !line.includes('"the database is unreachable');
  expect(project.printed.split("\n").filter(isFault)).toEqual([]);
  await expect.poll(() => project.leftovers(), { timeout: 45_000 }).toEqual([]);
}

test("a start that is ended while PostgreSQL makes its cluster shuts down in order", async () => {
  const project = start(await groundOfTest(), gateway);
  await project.untilThere("postgres/data.new");
  await expectOrderlyEnd(project, () => project.signal("SIGTERM"));
}, 120_000);

/** Runs a command as the first process of a PID namespace. When it ends, the kernel kills the rest. */
const asFirstProcess = [
  "unshare",
  "--pid",
  "--fork",
  "--mount-proc",
  ...(isRoot ? [] : ["--user", "--map-current-user"]),
];

test("npm start as the first process of a container, ended while the worker starts, shuts down in order", async () => {
  const ground = await groundOfTest(true);
  const project = start(ground, [...asFirstProcess, "npm", "start"]);
  await project.untilThere("worker.pid");
  const traces = ["worker.pid", "postgres/data/postmaster.pid"].map((path) => join(ground.dataDir, path));
  expect(traces.filter((path) => existsSync(path))).toEqual(traces);
  await expectOrderlyEnd(project, () => project.terminateFirst());
  // These files are deleted only by an orderly shutdown.
  expect(traces.filter((path) => existsSync(path))).toEqual([]);
}, 120_000);
