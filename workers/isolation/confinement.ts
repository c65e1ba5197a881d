import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Wire } from "../cdp/wire.ts";
import { ConfinementError } from "./confinement-error.ts";
import { readKernelFile } from "./kernel-file.ts";
import { systemPath } from "./namespace.ts";

/** How Chromium's own sandbox is made: of user namespaces, by its setuid helper, or not at all. */
export type Sandbox = "namespaces" | "setuid" | "none";

/** How long the kernel's answer to a probe may take; it takes 5 to 20 ms on a quiet machine. */
const probeMs = 15_000;

/** Gives the command that turns a process into one of the slot's, to be followed by a program and its arguments. */
export function confineCommand(enter: readonly string[], uid: number | undefined, sandbox: Sandbox): string[] {
  if (process.platform !== "linux") return [...enter];
  const identity =
    uid === undefined
      ? ["--inh-caps=-all", "--ambient-caps=-all"]
      : [`--reuid=${uid}`, `--regid=${uid}`, "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"];
  // Whoever breaks out of the renderer's sandbox finds no setuid program that works.
  const noNewPrivileges = sandbox === "setuid" ? [] : ["--no-new-privs"];
  return [...enter, "setpriv", ...identity, ...noNewPrivileges];
}

/** Throws where this process may not enter a slot's namespace and confine another process there. */
export function probeConfinement(confine: readonly string[]): void {
  if (process.platform !== "linux") return;
  const complaint = run([...confine, "true"]);
  if (complaint !== undefined)
    throw new ConfinementError({ what: "browsers cannot be confined", complaint, isRoot: true });
}

/**
 * Finds out which sandbox Chromium can have in a slot, by doing what it does first: namespaces for user and network, and a
 * root directory of its own. Throws where it can have none.
 */
export function probeSandbox(
  confine: readonly string[],
  uid: number | undefined,
  executables: readonly string[],
): Sandbox {
  if (process.platform !== "linux") return "namespaces";
  const isRoot = uid === undefined && process.getuid?.() === 0;
  const namespaces = ["unshare", "--user", "--map-root-user", "--net", "chroot", "/", "true"];
  const complaint = isRoot
    ? "as uid 0 Chromium has none, and this user namespace has no uids for slots"
    : run([...confine, ...namespaces]);
  if (complaint === undefined) return "namespaces";
  if (!isRoot && executables.length > 0 && executables.every(hasSetuidHelper)) return "setuid";
  const what = "browsers cannot have their sandbox";
  throw new ConfinementError({ what, complaint, isRoot: false, optOut: "BROWSER_SANDBOX=off" });
}

/** Throws where no renderer of a browser has a seccomp filter of its own. */
export async function probeRenderers({ root }: Wire): Promise<void> {
  const { processInfo } = await root.send("SystemInfo.getProcessInfo");
  const renderers = processInfo.filter(({ type }) => type === "renderer");
  const own = seccompFilters(process.pid) ?? 0;
  if (renderers.some(({ id }) => (seccompFilters(id) ?? Number(isFiltered(id))) > own)) return;
  throw new Error(`none of its ${renderers.length} renderers has a seccomp filter of its own`);
}

/** Counts the seccomp filters of a process, the worker's own among them; kernels before 5.9 do not tell. */
function seccompFilters(pid: number): number | undefined {
  const [, count] = /^Seccomp_filters:\t(\d+)/m.exec(readKernelFile(`/proc/${pid}/status`)) ?? [];
  return count === undefined ? undefined : Number(count);
}

const isFiltered = (pid: number): boolean => /^Seccomp:\t2/m.test(readKernelFile(`/proc/${pid}/status`));

/** Throws where a slot cannot reach and write its directory. */
export function probeDirectory(confine: readonly string[], directory: string): void {
  if (process.platform !== "linux" || run([...confine, "test", "-w", directory]) === undefined) return;
  throw new Error(`browsers cannot write in ${directory}: every directory above it must let all users through`);
}

/** Runs a command and gives undefined when it succeeds, else what it says. */
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
