import { execFile } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { isRoot, withoutCapability, withoutNamespaces } from "../isolation/world.ts";
import { longTest, withLong } from "../support/long-test.ts";
import { describeProcess, isStillThere, type ListedProcess } from "../support/process-list.ts";
import { clearGround, type Ground, makeGround, StartedProject } from "./started-project.ts";

const gateway = [process.execPath, "gateway/main.ts"];

/** Value in `/proc/<pid>/status` of a process with a seccomp filter. */
const filtered = "2";

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

/** Runs lines in a shell, like a user who pastes them, and returns their output. */
async function paste(lines: readonly string[], directory: string): Promise<string> {
  const { stdout } = await promisify(execFile)("sh", ["-c", lines.join("\n")], { cwd: directory, timeout: 60_000 });
  return stdout;
}

function seccompOf(pid: number): string | undefined {
  try {
    return /^Seccomp:\t(\d)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  } catch {
    // The process has ended.
    return undefined;
  }
}

/** Occupies a port before the service listens on it. */
async function occupied(port: string | undefined): Promise<AsyncDisposable> {
  const server = createServer().listen(Number(port), "127.0.0.1");
  await once(server, "listening");
  return server;
}

test("npm start runs a confined browser, its printed lines work as pasted, and Ctrl-C ends everything", async () => {
  const ground = await groundOfTest();
  const project = start(ground);
  const lines = await project.pasteLines();
  const destroy = lines.at(-1) ?? "";
  expect(destroy).toContain("DELETE");

  const output = await paste(lines.slice(0, -1), ground.home);
  const id = /^ses_\w+$/m.exec(output)?.[0];
  expect(output).not.toContain("errors/");
  expect(readFileSync(join(ground.home, "page.png")).subarray(1, 4).toString()).toBe("PNG");
  expect(readFileSync(join(ground.home, "page.html"), "utf8")).toContain("Thank you, Ada!");
  expect(readFileSync(join(ground.home, "page.pdf")).subarray(0, 5).toString()).toBe("%PDF-");

  let browser: ListedProcess[] = [];
  // A browser that is launched ahead for the next session is not confined until its program starts.
  const confinement = async () => {
    browser = await project.browserProcesses();
    const renderers = browser.filter(({ command }) => command.includes("--type=renderer"));
    const networks = browser.flatMap(({ network }) => network ?? []);
    const outside = describeProcess(await project.workerPid())?.network;
    return {
      hasRenderers: renderers.length > 0,
      unfiltered: renderers.filter(({ pid }) => seccompOf(pid) !== filtered).map(({ command }) => command),
      hasNetworks: networks.length > 0,
      isOutside: networks.some((network) => network === outside),
    };
  };
  await expect.poll(confinement).toEqual({ hasRenderers: true, unfiltered: [], hasNetworks: true, isOutside: false });
  expect(readFileSync(join(ground.dataDir, "worker.log"), "utf8")).toContain('"isolation":"namespace"');

  const setting = lines.slice(0, 2);
  expect(await paste([...setting, `ID=${id}`, destroy], ground.home)).toBe("");
  // Another browser may have been launched ahead for the next session.
  const mains = browser.filter(({ command }) => !command.includes("--type="));
  await expect.poll(() => mains.every(isStillThere), { timeout: 30_000 }).toBe(false);
  project.signal("SIGINT");
  // npm exits by the signal that it received, regardless of the service's exit code.
  expect(["SIGINT", 0, 130]).toContain(await project.ended());
  await expect.poll(() => project.leftovers(), { timeout: 45_000 }).toEqual([]);
}, 120_000);

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
    expect(workerLog).toContain('"isolation":"flags","browserSandbox":"off"');
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
      `pilothouse: port ${ground.env[name]} is in use: stop what listens there, or set ${name}\n`,
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
    `pilothouse: port ${PORT} is in use: stop what listens there, or set PORT or GRPC_PORT\n`,
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

test("an invalid value stops the start with the variable's name and accepted values", async () => {
  const ground = await groundOfTest();
  const wrong = {
    PORT: "eighty",
    WORKER_SLOTS: "257",
    EGRESS_ALLOW: "localhost",
    ISOLATION: "auto",
    LOG_LEVEL: "loud",
    DATA_DIR: "/x".repeat(60),
  };
  const ends = Object.entries(wrong).map(async ([name, value]) => {
    const project = start(ground, gateway, { [name]: value });
    expect([name, await project.ended()]).toEqual([name, 1]);
    expect(project.printed).toMatch(new RegExp(`^pilothouse: ${name} accepts .*\n$`));
  });
  await Promise.all(ends);
}, 60_000);

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

test.for([
  ["PostgreSQL makes its cluster", "postgres/data.new"],
  ["the worker starts", "worker.pid"],
] as const)("a start that is ended while %s shuts down in order", { timeout: 120_000 }, async ([, sign]) => {
  const ground = await groundOfTest(sign === "worker.pid");
  const project = start(ground, gateway);
  await project.untilThere(sign);
  project.signal("SIGTERM");
  expect(await project.ended()).toBe(0);
  // The service may be ready before the signal arrives. It must not print errors, except that PostgreSQL was too slow
  // on a busy machine.
  const printed = project.printed.replaceAll(/^\{.*"the database is unreachable.*\}\n/gm, "");
  expect(printed).not.toMatch(/pilothouse:|"level":[456]0|\n {4}at /);
  await expect.poll(() => project.leftovers(), { timeout: 45_000 }).toEqual([]);
});
