import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type BrowserPaths, type BrowserRuntime, browserRuntimes } from "../src/platform/browsers/browser-paths.ts";

/** The machine that lacks a browser, as far as it decides how to get one. */
export interface Machine {
  /** `ID` of /etc/os-release; empty where there is none. */
  system: string;
  isRoot: boolean;
  /** Whether the host of Playwright's downloads answers; asked only when it matters. */
  downloadAnswers(): Promise<boolean>;
}

/** How the missing browsers will be installed, if any is missing and anybody can. */
export type InstallPlan =
  | { by: "nothing" }
  | { by: "apt"; browsers: string[] }
  | { by: "playwright"; browsers: string[]; withDependencies: boolean }
  | { by: "nobody" };

const playwrightBrowser: Record<BrowserRuntime, string> = {
  chromium: "chromium",
  "headless-shell": "chromium-headless-shell",
};

/** A download of 300 MB at 0.5 MB/s takes ten minutes; what takes twice that will not end. */
const installDeadlineMs = 20 * 60_000;

/** Decides how the runtimes that were not found are installed: with Debian's packages by its root, else by Playwright. */
export async function planInstall(found: BrowserPaths, machine: Machine): Promise<InstallPlan> {
  const missing = browserRuntimes.filter((runtime) => found[runtime] === undefined);
  if (missing.length === 0) return { by: "nothing" };
  // Debian's packages are called as Playwright's browsers are. Ubuntu's chromium is a stub of a snap that cannot be used.
  const names = missing.map((runtime) => playwrightBrowser[runtime]);
  if (machine.isRoot && machine.system === "debian") return { by: "apt", browsers: names };
  if (!(await machine.downloadAnswers())) return { by: "nobody" };
  return { by: "playwright", browsers: names, withDependencies: machine.isRoot };
}

/** Times of waiting for another program's lock of the package manager, in milliseconds. */
const lockPatience = { total: 5 * 60_000, between: 3_000 };

/** Runs Debian's package manager. While another program holds a lock of it, notifies `note` once, and tries again. */
export async function installByApt(
  packages: string[],
  note: (line: string) => void,
  { total, between } = lockPatience,
): Promise<void> {
  // The reason is read from what apt-get prints, so it has to be in English.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C" };
  const deadline = performance.now() + total;
  let isNoted = false;
  for (const args of [["update"], ["install", "-y", ...packages]]) {
    for (;;) {
      const { failure, printed } = await runShown("apt-get", args, env);
      if (failure === undefined) break;
      // Its own option DPkg::Lock::Timeout leaves out the locks of the lists and of the archives.
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
  const installer = fileURLToPath(new URL("../node_modules/playwright-core/cli.js", import.meta.url));
  const flags = withDependencies ? ["--with-deps"] : [];
  const env = { ...process.env, PLAYWRIGHT_BROWSERS_PATH: directory };
  await run(process.execPath, [installer, "install", ...flags, ...browsers], env);
}

/** Says whether an executable starts: a downloaded browser does not where system libraries are missing. */
export function canStart(executable: string): boolean {
  return spawnSync(executable, ["--version"], { timeout: 10_000, stdio: "ignore" }).status === 0;
}

/** Runs a command as `run` does, and returns what it printed. */
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
