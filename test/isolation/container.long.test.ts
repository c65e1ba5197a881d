import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { create } from "@bufbuild/protobuf";
import { expect, onTestFinished, test } from "vitest";
import { CreateSessionRequestSchema, SessionStatus } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { releaseVersion } from "../../src/platform/release.ts";
import { makeDataDirectory, startTestDatabase } from "../support/database.ts";
import { freePorts } from "../support/free-port.ts";
import { testSecretsKeys } from "../support/secrets-keys.ts";
import { startSessionsApp } from "../support/sessions-app.ts";

/** Default profile of Docker and Podman, which Debian installs with Podman. */
const defaultProfile = "/usr/share/containers/seccomp.json";

/** System calls that an ordinary user also needs, as documented in docs/scaling.md. */
const added = ["clone", "clone3", "unshare", "setns", "chroot"];

/** Rule of a seccomp profile, with the members that matter here. */
interface SeccompRule {
  readonly names: readonly string[];
}

/** Writes the documented profile: the default profile, with a few calls allowed without conditions. */
async function writeProfile(directory: string): Promise<string> {
  const profile: { syscalls: SeccompRule[] } = JSON.parse(await readFile(defaultProfile, "utf8"));
  const others = profile.syscalls.map((rule) => ({
    ...rule,
    names: rule.names.filter((name) => !added.includes(name)),
  }));
  const syscalls = [{ names: added, action: "SCMP_ACT_ALLOW" }, ...others.filter(({ names }) => names.length > 0)];
  const path = join(directory, "seccomp.json");
  await writeFile(path, JSON.stringify({ ...profile, syscalls }));
  return path;
}

/** Runs a worker in a container on a temporary copy-on-write view of this machine's files. */
function runContained(options: readonly string[], env: Readonly<Record<string, string>>) {
  const variables = Object.entries(env).flatMap(([name, value]) => ["--env", `${name}=${value}`]);
  const podman = ["--runtime", "runc", "--cgroup-manager", "cgroupfs", "run", "--rm", "--network", "host"];
  // At most the limits of a machine that is itself a container.
  const limits = ["--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096", "--shm-size", "1g"];
  const worker = ["--workdir", resolve("."), "--rootfs", "/:O", process.execPath, "workers/main.ts"];
  const child = spawn("podman", [...podman, ...limits, ...options, ...variables, ...worker]);
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (text: Buffer) => {
      said += text.toString();
    });
  }
  onTestFinished(() => end(child));
  return { child, said: () => said };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill("SIGTERM");
  await once(child, "exit");
}

const token = "a token of the tests alone";
const common = { WORKER_TOKEN: token, DATA_DIR: "/tmp/worker", HOME: "/tmp", WORKER_SLOTS: "2", DRAIN_SECONDS: "0" };

test("a worker with a container's default rights exits with 1 and an explanation", { timeout: 120_000 }, async () => {
  const own = { CONTROL: "127.0.0.1:9", WORKER_LISTEN: "127.0.0.1:0" };
  const { child, said } = runContained([], { ...common, ...own });
  const [status] = await once(child, "exit");
  expect(status, said()).toBe(1);
  expect(said()).toMatch(/the worker does not start: cannot create a network namespace.*\nMissing: .*`unshare`/);
});

test("uid 1000 with the documented profile runs with namespace and sandbox", { timeout: 180_000 }, async () => {
  const directory = await makeDataDirectory();
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  await using database = await startTestDatabase();
  const config = { HOST: "127.0.0.1", FLEET_PORT: "0", SIGNUP: "closed", SECRETS_KEYS: testSecretsKeys };
  await using running = await startSessionsApp({ DATABASE_URL: database.url, QUEUE_MS: "60000", ...config });
  const { LISTEN, INTERNAL_PORT } = await freePorts("LISTEN", "INTERNAL_PORT");
  const rights = ["--user", "1000:1000", "--cap-drop", "all", "--security-opt", "no-new-privileges"];
  const { said } = runContained([...rights, "--security-opt", `seccomp=${await writeProfile(directory)}`], {
    ...common,
    CONTROL: `127.0.0.1:${running.app.fleet?.port}`,
    WORKER_LISTEN: `127.0.0.1:${LISTEN}`,
    INTERNAL_PORT: String(INTERNAL_PORT),
  });
  const health = () =>
    fetch(`http://127.0.0.1:${INTERNAL_PORT}/healthz`).then(
      (answer) => answer.text(),
      () => said(),
    );
  await expect
    .poll(health, { timeout: 90_000, interval: 500 })
    .toBe(`ok\nrelease ${releaseVersion}\nisolation namespace\nbrowser sandbox on\n`);
  const call = await running.caller();
  const session = await running.sessions.create(call(), create(CreateSessionRequestSchema, {}));
  expect(session.status).toBe(SessionStatus.LIVE);
});
