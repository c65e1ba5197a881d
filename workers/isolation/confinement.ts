import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { CdpConnection } from "../cdp/cdp-connection.ts";
import { ConfinementError } from "./confinement-error.ts";
import { readKernelFile } from "./kernel-file.ts";
import { systemPath } from "./namespace.ts";

/** Type of Chromium's own sandbox: user namespaces, its setuid helper, or none. */
export type ChromiumSandbox = "namespaces" | "setuid" | "none";

/** Timeout of a probe in milliseconds. A probe takes 5 to 20 ms on a quiet machine. */
const probeMs = 15_000;

/** Returns the command that runs a program inside the slot. Append the program and its arguments. */
export function confineCommand(enter: readonly string[], uid: number | undefined, sandbox: ChromiumSandbox): string[] {
  if (process.platform !== "linux") return [...enter];
  const identity =
    uid === undefined
      ? ["--inh-caps=-all", "--ambient-caps=-all"]
      : [`--reuid=${uid}`, `--regid=${uid}`, "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"];
  // With no-new-privs, setuid programs gain no privileges after a sandbox escape. Chromium's setuid helper needs them.
  const noNewPrivileges = sandbox === "setuid" ? [] : ["--no-new-privs"];
  return [...enter, "setpriv", ...identity, ...noNewPrivileges];
}

/** Throws if this process cannot enter a slot's namespace and confine a process there. */
export function probeConfinement(confine: readonly string[]): void {
  if (process.platform !== "linux") return;
  const errorOutput = run([...confine, "true"]);
  if (errorOutput !== undefined)
    throw new ConfinementError({ what: "cannot confine browsers", errorOutput, isRoot: true });
}

/**
 * Returns the sandbox that Chromium can use in a slot. Probes Chromium's first steps: user and network namespaces, and
 * chroot. Throws if no sandbox is available.
 */
export function probeSandbox(
  confine: readonly string[],
  uid: number | undefined,
  executables: readonly string[],
): ChromiumSandbox {
  if (process.platform !== "linux") return "namespaces";
  const isRoot = uid === undefined && process.getuid?.() === 0;
  const namespaces = ["unshare", "--user", "--map-root-user", "--net", "chroot", "/", "true"];
  const errorOutput = isRoot
    ? "Chromium has no sandbox as uid 0, and this user namespace has no uids for slots"
    : run([...confine, ...namespaces]);
  if (errorOutput === undefined) return "namespaces";
  if (!isRoot && executables.length > 0 && executables.every(hasSetuidHelper)) return "setuid";
  const what = "cannot enable Chromium's sandbox";
  throw new ConfinementError({ what, errorOutput, isRoot: false, optOut: "BROWSER_SANDBOX=off" });
}

/** Throws if no renderer of a browser has its own seccomp filter. */
export async function probeRenderers({ root }: CdpConnection): Promise<void> {
  const { processInfo } = await root.send("SystemInfo.getProcessInfo");
  const renderers = processInfo.filter(({ type }) => type === "renderer");
  const own = seccompFilters(process.pid) ?? 0;
  if (renderers.some(({ id }) => (seccompFilters(id) ?? Number(isFiltered(id))) > own)) return;
  throw new Error(`none of the browser's ${renderers.length} renderers has its own seccomp filter`);
}

/**
 * Returns the number of seccomp filters of a process, including inherited ones. Undefined on kernels before 5.9, or if
 * the process has ended.
 */
function seccompFilters(pid: number): number | undefined {
  const [, count] = /^Seccomp_filters:\t(\d+)/m.exec(readKernelFile(`/proc/${pid}/status`)) ?? [];
  return count === undefined ? undefined : Number(count);
}

const isFiltered = (pid: number): boolean => /^Seccomp:\t2/m.test(readKernelFile(`/proc/${pid}/status`));

/** Throws if a confined process cannot write to a directory. */
export function probeDirectory(confine: readonly string[], directory: string): void {
  if (process.platform !== "linux" || run([...confine, "test", "-w", directory]) === undefined) return;
  throw new Error(`browsers cannot write in ${directory}: every parent directory must be searchable by all users`);
}

/** Runs a command. Returns undefined on success, otherwise its error output. */
function run([command = "", ...parameters]: readonly string[]): string | undefined {
  const { status, stderr, error } = spawnSync(command, parameters, {
    encoding: "utf8",
    timeout: probeMs,
    cwd: "/",
    env: { PATH: systemPath },
  });
  return status === 0 ? undefined : (error?.message ?? stderr.trim());
}

function hasSetuidHelper(executable: string): boolean {
  const helper = statSync(join(dirname(executable), "chrome-sandbox"), { throwIfNoEntry: false });
  return helper !== undefined && helper.uid === 0 && (helper.mode & 0o4111) === 0o4111;
}
