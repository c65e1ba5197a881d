import { execFile, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const module = new URL("livekit/", import.meta.url).pathname;
const cache = new URL("../../.cache/livekit/", import.meta.url).pathname;
const server = "github.com/livekit/livekit-server/cmd/server";

/** Milliseconds for the build while a whole suite runs on two cores. */
const buildMs = 1_500_000;

/** First installed Go that can build the server. Debian's is too old. */
export const go = ["go", "/usr/local/go/bin/go"].find((name) => canBuild(name));

function canBuild(name: string): boolean {
  const { status, stdout } = spawnSync(name, ["env", "GOVERSION"], { encoding: "utf8", cwd: "/" });
  const [, minor = 0] = /^go1\.(\d+)/.exec(stdout ?? "") ?? [];
  return status === 0 && Number(minor) >= 21;
}

let building: Promise<string> | undefined;

/** Returns the server's program. The first call builds it at low priority, which takes five minutes of CPU. */
export function builtLiveKit(): Promise<string> {
  building ??= build();
  return building;
}

async function build(): Promise<string> {
  const version = /livekit-server (v[\d.]+)/.exec(await readFile(join(module, "go.mod"), "utf8"))?.[1];
  const program = join(cache, `livekit-server-${version}`);
  if (existsSync(program)) return program;
  if (go === undefined) throw new Error("there is no Go to build LiveKit with");
  await mkdir(cache, { recursive: true });
  const own = `${program}.${process.pid}`;
  const options = { cwd: module, timeout: buildMs, env: { ...process.env, CGO_ENABLED: "0" } };
  await promisify(execFile)("nice", ["-n", "19", go, "build", "-o", own, server], options);
  await rename(own, program);
  return program;
}
