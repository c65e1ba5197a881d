import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { type BrowserPaths, type BrowserRuntime, browserRuntimes } from "../../src/platform/browsers/browser-paths.ts";

const run = promisify(execFile);

/** Timeout in milliseconds for a browser to print its version, which takes 30 ms on a quiet machine. */
const versionMs = 15_000;

/** Reads the major version of every installed browser. A browser that fails counts as not installed. */
export async function probeRuntimes(executables: BrowserPaths): Promise<ReadonlyMap<BrowserRuntime, number>> {
  const probed = await Promise.all(
    browserRuntimes.map(async (runtime) => [runtime, await majorVersion(executables[runtime])] as const),
  );
  const runtimes = new Map<BrowserRuntime, number>();
  for (const [runtime, major] of probed) if (major !== undefined) runtimes.set(runtime, major);
  return runtimes;
}

async function majorVersion(executable: string | undefined): Promise<number | undefined> {
  if (executable === undefined) return undefined;
  try {
    const { stdout } = await run(executable, ["--version"], { timeout: versionMs, cwd: "/" });
    const [, major] = /(\d+)\.\d+/.exec(stdout) ?? [];
    return major === undefined ? undefined : Number(major);
  } catch {
    return undefined;
  }
}
