import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { freePorts } from "./free-port.ts";
import { go } from "./livekit-build.ts";

const version = "v0.203.0";
const cache = new URL(`../../.cache/stripe-mock-${version}/`, import.meta.url).pathname;

/** Milliseconds for the build while a whole suite runs on two cores. */
const buildMs = 600_000;

async function build(): Promise<string> {
  const program = join(cache, "stripe-mock");
  if (existsSync(program)) return program;
  if (go === undefined) throw new Error("there is no Go to build stripe-mock with");
  const options = { cwd: "/", timeout: buildMs, env: { ...process.env, GOBIN: cache, CGO_ENABLED: "0" } };
  await promisify(execFile)("nice", ["-n", "19", go, "install", `github.com/stripe/stripe-mock@${version}`], options);
  return program;
}

/** Stripe's own test server: validates requests against the API definition and returns examples. */
export interface StripeMock extends AsyncDisposable {
  readonly url: string;
}

/** Builds the server on the first call and starts it. */
export async function startStripeMock(): Promise<StripeMock> {
  const program = await build();
  const { PORT } = await freePorts("PORT");
  const child = spawn(program, ["-http-addr", `127.0.0.1:${PORT}`], { stdio: "ignore" });
  const url = `http://127.0.0.1:${PORT}`;
  const answers = () =>
    fetch(url).then(
      () => true,
      () => false,
    );
  if (!(await waitUntil(answers, { timeout: 60_000, every: 50 }))) throw new Error("stripe-mock does not answer");
  return {
    url,
    async [Symbol.asyncDispose]() {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}
