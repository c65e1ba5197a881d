import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
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

/** Runs Debian's package manager. */
export async function installByApt(packages: string[]): Promise<void> {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  await run("apt-get", ["update"], env);
  await run("apt-get", ["install", "-y", ...packages], env);
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

async function run(command: string, args: string[], env: NodeJS.ProcessEnv): Promise<void> {
  const child = spawn(command, args, { env, stdio: ["ignore", "inherit", "inherit"], timeout: installDeadlineMs });
  const [code, signal] = await once(child, "exit");
  if (code !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${signal ?? code}.`);
}
