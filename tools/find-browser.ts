// Finds the browsers of sessions, or installs them.
//   plan     prints nothing if no action is needed, else a short description of `install`
//   install  installs missing browsers
//   report   reports missing browsers
// Without any browser, plan and report exit with 1 and a sentence that names the command to run.
import { writeSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";
import {
  type BrowserSearch,
  browserRuntimes,
  findBrowsers,
  playwrightDirectory,
  realDisk,
} from "../src/platform/browsers/browser-paths.ts";
import { dataDirectory } from "../src/platform/data-directory.ts";
import { canStart, type InstallPlan, installByApt, installByPlaywright, planInstall } from "./browser-install.ts";
import { downloadAnswers, installCommand, noBrowser, operatingSystem } from "./browser-source.mjs";

const { env, platform } = process;
const uid = process.getuid?.() ?? -1;
const search: BrowserSearch = {
  env,
  platform,
  dataDirectory: resolve(dataDirectory({ env, uid, home: homedir() })),
  disk: realDisk,
};
const directory = playwrightDirectory(search);

function plan(): Promise<InstallPlan> {
  return planInstall(findBrowsers(search), { system: operatingSystem(), isRoot: uid === 0, downloadAnswers });
}

/** Reports missing or broken runtimes. The service starts if at least one runtime works. */
function report(wasTried: boolean): void {
  const found = findBrowsers(search);
  const paths = Object.values(found);
  const running = paths.filter(canStart);
  const missing = browserRuntimes.filter((runtime) => found[runtime] === undefined);
  if (paths.length === 0) throw new Error(noBrowser(directory, wasTried && uid === 0));
  if (running.length === 0) {
    const repair = "sudo npx playwright install-deps chromium";
    throw new Error(`${paths.join(" and ")} cannot start: run \`${repair}\`, and start again.`);
  }
  if (missing.length > 0) {
    const repair = `to have it, run \`${installCommand(directory)}\``;
    console.error(`pilothouse: no ${missing.join()} was found, so its sessions will be refused; ${repair}.`);
  }
}

async function printPlan(): Promise<void> {
  const steps = await plan();
  if (steps.by === "nothing") return;
  if (steps.by === "impossible") return report(false);
  const names = steps.browsers.join(" and ");
  console.log(steps.by === "apt" ? `installing ${names} with apt-get` : `downloading ${names} with Playwright`);
}

/** Writes a line that setup.sh shows at once. Other output is shown only if the step fails. */
function note(line: string): void {
  if (env.NOTES_FD) writeSync(Number(env.NOTES_FD), `\npilothouse: ${line}\n`);
  else console.error(`pilothouse: ${line}`);
}

async function install(): Promise<void> {
  const steps = await plan();
  if (steps.by === "apt") await installByApt(steps.browsers, note);
  if (steps.by === "playwright") await installByPlaywright(directory, steps.browsers, steps.withDependencies);
}

const verbs: Record<string, () => void | Promise<void>> = { plan: printPlan, install, report: () => report(true) };
try {
  const verb = verbs[process.argv[2] ?? "plan"];
  if (verb === undefined) throw new Error("find-browser knows plan, install and report.");
  await verb();
} catch (error) {
  console.error(`pilothouse: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}
