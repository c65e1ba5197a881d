import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type BrowserPaths, type BrowserRuntime, browserRuntimes } from "../src/platform/browsers/browser-paths.ts";

/** Properties of a machine that decide how to install browsers. */
export interface Machine {
  /** `ID` of /etc/os-release, or "". */
  system: string;
  isRoot: boolean;
  /** Returns whether the host of Playwright's downloads responds. Called only if needed. */
  downloadAnswers(): Promise<boolean>;
}

/** How to install missing browsers. `nothing`: none is missing. `impossible`: they cannot be downloaded. */
export type InstallPlan =
  | { by: "nothing" }
  | { by: "apt"; browsers: string[] }
  | { by: "playwright"; browsers: string[]; withDependencies: boolean }
  | { by: "impossible" };

const playwrightBrowser: Record<BrowserRuntime, string> = {
  chromium: "chromium",
  "headless-shell": "chromium-headless-shell",
};

/** Milliseconds until an installation is aborted: twice the time of a download of 300 MB at 0.5 MB/s. */
const installDeadlineMs = 20 * 60_000;

/** Decides how to install missing runtimes: by Debian's packages as root on Debian, else by Playwright. */
export async function planInstall(found: BrowserPaths, machine: Machine): Promise<InstallPlan> {
  const missing = browserRuntimes.filter((runtime) => found[runtime] === undefined);
  if (missing.length === 0) return { by: "nothing" };
  // The names of Debian's packages are those of Playwright's browsers. Ubuntu's chromium is an unusable snap stub.
  const names = missing.map((runtime) => playwrightBrowser[runtime]);
  if (machine.isRoot && machine.system === "debian") return { by: "apt", browsers: names };
  if (!(await machine.downloadAnswers())) return { by: "impossible" };
  return { by: "playwright", browsers: names, withDependencies: machine.isRoot };
}

/** Milliseconds to wait for another program's lock of the package manager. */
const lockTimeouts = { total: 5 * 60_000, between: 3_000 };

/** Runs apt-get. While another program holds the package manager's lock, calls `note` once and retries. */
export async function installByApt(
  packages: string[],
  note: (line: string) => void,
  { total, between } = lockTimeouts,
): Promise<void> {
  // English messages, since the reason is parsed from the output of apt-get.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C" };
  const deadline = performance.now() + total;
  let isNoted = false;
  for (const args of [["update"], ["install", "-y", ...packages]]) {
    for (;;) {
      const { failure, printed } = await runShown("apt-get", args, env);
      if (failure === undefined) break;
      // The option DPkg::Lock::Timeout does not cover the locks of the lists and archives.
      const lock = /^E: Could not get lock (.*?)\.?$/m.exec(printed)?.[1];
      if (lock === undefined) throw new Error(failure);
      if (performance.now() > deadline)
        throw new Error(`another program still holds ${lock}. Start again when it has finished.`);
      if (!isNoted) note(`another program holds ${lock}. Waiting for up to ${Math.ceil(total / 60_000)} min`);
      isNoted = true;
      await setTimeout(between);
    }
  }
}

/** Runs Playwright's installer into a directory. */
export async function installByPlaywright(
  directory: string,
  browsers: string[],
  withDependencies: boolean,
): Promise<void> {
  const installer = fileURLToPath(new URL("../node_modules/playwright/cli.js", import.meta.url));
  const flags = withDependencies ? ["--with-deps"] : [];
  const env = { ...process.env, PLAYWRIGHT_BROWSERS_PATH: directory };
  await run(process.execPath, [installer, "install", ...flags, ...browsers], env);
}

/** Returns whether an executable starts. A downloaded browser does not start if system libraries are missing. */
export function canStart(executable: string): boolean {
  return spawnSync(executable, ["--version"], { timeout: 10_000, stdio: "ignore" }).status === 0;
}

/** Runs a command, shows its output, and returns the output. */
async function runShown(
  command: string,
  args: string[],
  env: NodeJS.ProcessEnv,
): Promise<{ failure: string | undefined; printed: string }> {
  const child = spawn(command, args, { env, stdio: ["ignore", "pipe", "pipe"], timeout: installDeadlineMs });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      printed += text;
      process.stdout.write(text);
    });
  }
  const [code, signal] = await once(child, "close");
  const failure = code === 0 ? undefined : `${command} ${args.join(" ")} ended with ${signal ?? code}.`;
  return { failure, printed };
}

async function run(command: string, args: string[], env: NodeJS.ProcessEnv): Promise<void> {
  const child = spawn(command, args, { env, stdio: ["ignore", "inherit", "inherit"], timeout: installDeadlineMs });
  const [code, signal] = await once(child, "exit");
  if (code !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${signal ?? code}.`);
}
