import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFile, copyFile, open, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import type { ComposeRun } from "../support/compose-client.ts";
import { makeDataDirectory } from "../support/database.ts";
import { builtLiveKit } from "../support/livekit-build.ts";
import { isServed } from "../support/livekit-scene.ts";
import { buildImage, hasPodman, limits, podman } from "../support/podman.ts";

const run = promisify(execFile);
const canRun = hasPodman("compose.yaml is");

/** Program that reads compose.yaml, from PyPI. */
const composer = "podman-compose==1.6.0";

/** Network namespace of all containers, so that nothing of the machine is reached or changed. */
const network = `pilothouse-${process.pid}`;
const url = "http://127.0.0.1:8080";
/** Address of the machine for viewers and workers (RFC 5737). */
const machine = "192.0.2.10";
const profile = isServed ? ["--profile", "video"] : [];
let directory = "";
let key = "";
let hasNetwork = false;

/** Runs a program in the network of the containers. Its output goes to a file: containers keep it open. */
async function inside(...words: string[]): Promise<string> {
  const path = join(directory, "output");
  const file = await open(path, "w");
  const settings = { CONTAINERS_CONF: join(directory, "containers.conf") };
  const child = spawn("nsenter", [`--net=/run/netns/${network}`, ...words], {
    cwd: directory,
    env: { ...process.env, ...settings },
    stdio: ["ignore", file.fd, file.fd],
  });
  const [code] = await once(child, "exit");
  await file.close();
  const output = await readFile(path, "utf8");
  if (code !== 0) throw new Error(`${words.join(" ")} exited with ${code}:\n${output.slice(-4_000)}`);
  return output.trim();
}

const compose = (...words: string[]): Promise<string> =>
  inside(join(directory, "venv/bin/podman-compose"), ...profile, ...words);

async function buildLiveKit(): Promise<string> {
  const program = await builtLiveKit();
  return buildImage(
    "test/deploy/servers/livekit.Dockerfile",
    dirname(program),
    "livekit",
    `PROGRAM=${basename(program)}`,
  );
}

beforeAll(async () => {
  if (!canRun) return;
  directory = await makeDataDirectory();
  const { GATEWAY_IMAGE, WORKER_IMAGE } = process.env;
  const servers = (target: string) => buildImage("test/deploy/servers/Dockerfile", "test/deploy/servers", target);
  const images = {
    GATEWAY_IMAGE: GATEWAY_IMAGE ?? (await buildImage("deploy/Dockerfile", ".", "gateway")),
    WORKER_IMAGE: WORKER_IMAGE ?? (await buildImage("deploy/Dockerfile", ".", "worker")),
    POSTGRES_IMAGE: await servers("postgres"),
    REDIS_IMAGE: await servers("redis"),
    PROXY_IMAGE: await servers("proxy"),
    ...(isServed && { LIVEKIT_IMAGE: await buildLiveKit() }),
  };
  await run("python3", ["-m", "venv", join(directory, "venv")]);
  await run(join(directory, "venv/bin/pip"), ["install", "--quiet", composer]);
  for (const name of ["compose.yaml", "Caddyfile"]) await copyFile(`deploy/${name}`, join(directory, name));
  const print = (image: string, what: string) => podman("run", "--rm", ...limits, "--network", "none", image, what);
  await writeFile(join(directory, ".env"), `${await print(images.GATEWAY_IMAGE, "env")}\n`);
  await appendFile(
    join(directory, ".env"),
    Object.entries({ ...images, LIVEKIT_URL: "ws://livekit.localhost:7880", LIVEKIT_NODE_IP: machine })
      .map((each) => `${each.join("=")}\n`)
      .join(""),
  );
  await writeFile(join(directory, "pilothouse-seccomp.json"), await print(images.WORKER_IMAGE, "seccomp"));
  // Other work on the machine does not count here.
  const calm = { services: { worker: { environment: { CLOSE_AT_CPU: 100, CLOSE_AT_MEMORY: 100 } } } };
  await writeFile(join(directory, "compose.override.yaml"), JSON.stringify(calm));
  const ulimits = 'default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]';
  const engine = 'runtime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"';
  await writeFile(join(directory, "containers.conf"), `[containers]\n${ulimits}\n[engine]\n${engine}\n`);
  await run("ip", ["netns", "add", network]);
  hasNetwork = true;
  await inside("ip", "link", "set", "lo", "up");
  await inside("ip", "address", "add", `${machine}/32`, "dev", "lo");
  await compose("up", "--detach");
  const command = ["run", "--rm", "--no-deps", "-T", "control", "admin", "create-key", "--account", "one"];
  const answers = () => inside("curl", "-sf", `${url}/v1/status`).then(Boolean, () => false);
  if (!(await waitUntil(answers, { timeout: 120_000, every: 500 }))) throw new Error(await compose("logs"));
  key = (await compose(...command, "--tier", "api_scale")).split("\n").at(-1) ?? "";
}, 1_800_000);

afterAll(async () => {
  if (directory === "") return;
  if (hasNetwork) await compose("down", "--volumes", "--timeout", "5");
  if (hasNetwork) await run("ip", ["netns", "delete", network]);
  await rm(directory, { recursive: true, force: true });
}, 120_000);

/** Drives four sessions for some seconds, and does something to a container meanwhile. */
async function drive(seconds: number, disturb?: () => Promise<unknown>): Promise<ComposeRun> {
  const program = resolve("test/support/compose-client.ts");
  const words = [`--net=/run/netns/${network}`, process.execPath, program, url, key, String(seconds)];
  const client: ChildProcess = spawn("nsenter", words, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  let log = "";
  client.stdout?.on("data", (chunk) => {
    output += chunk;
  });
  client.stderr?.on("data", (chunk) => {
    log += chunk;
  });
  const ended = once(client, "close");
  await expect.poll(() => log || client.exitCode, { timeout: 60_000 }).toMatch("driving");
  await disturb?.();
  await ended;
  if (client.exitCode !== 0) throw new Error(log);
  return JSON.parse(output);
}

/** Kills the first process of a container, as a crash does. */
async function crash(name: string): Promise<void> {
  process.kill(Number(await inside("podman", "inspect", name, "--format", "{{.State.Pid}}")), "SIGKILL");
}

const live = Array.from({ length: 4 }, () => "live");

describe.runIf(canRun)("compose.yaml", { timeout: 120_000 }, () => {
  test("serves sessions by REST, gRPC and WebSocket through the proxy", async () => {
    expect(await drive(1)).toEqual({
      product: expect.stringContaining("Chrome/"),
      navigations: { 200: expect.any(Number) },
      ends: live,
    });
  });

  test.runIf(isServed)("a viewer outside the containers sees video of LiveKit by ICE over TCP", async () => {
    expect(await inside(process.execPath, resolve("test/support/compose-viewer.ts"), url, key)).toBe("video by tcp");
  });

  test("a gateway that restarts in order fails no request", async () => {
    const { navigations, ends } = await drive(15, () =>
      inside("podman", "--runtime", "runc", "restart", "--time", "40", "pilothouse_gateway-1_1"),
    );
    expect(navigations).toEqual({ 200: expect.any(Number) });
    expect(ends).toEqual(live);
  });

  test.each(["gateway-2", "control", "redis", "postgres", "proxy"])("a crash of %s ends no session", async (name) => {
    const { navigations, ends } = await drive(15, () => crash(`pilothouse_${name}_1`));
    expect(ends, JSON.stringify(navigations)).toEqual(live);
  });

  test("a crash of a worker ends its sessions alone", async () => {
    const { ends } = await drive(15, () => crash("pilothouse_worker_1"));
    expect([...new Set(ends)].sort()).toEqual(["live", expect.stringContaining("worker_lost")]);
    expect((await drive(1)).ends).toEqual(live);
  });
});
