import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { dirname, join } from "node:path";

/** What keeps a page of a session inside: a network namespace, or only the browser's flags where the kernel refuses one. */
export type Isolation = "namespace" | "flags";

/** How Chromium's own sandbox is made: of user namespaces, by its setuid helper, or not at all. */
export type Sandbox = "namespaces" | "setuid" | "none";

/** How long the kernel's answer to a probe may take. */
const probeMs = 5_000;

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

/**
 * Finds out which sandbox Chromium can have in a slot, by doing what it does first: namespaces for user and network.
 * Throws where this process may not even confine another.
 */
export function probeSandbox(
  confine: readonly string[],
  uid: number | undefined,
  executables: readonly string[],
): Sandbox {
  if (process.platform !== "linux") return "namespaces";
  const refusal = run([...confine, "true"]);
  if (refusal !== undefined) {
    throw new Error(
      `browsers cannot be confined here (as root this takes CAP_SETUID, CAP_SETGID and CAP_SETPCAP): ${refusal}`,
    );
  }
  // Chromium does not start with its sandbox as uid 0.
  if (uid === undefined && process.getuid?.() === 0) return "none";
  if (run([...confine, "unshare", "--user", "--map-current-user", "--net", "true"]) === undefined) return "namespaces";
  return executables.length > 0 && executables.every(hasSetuidHelper) ? "setuid" : "none";
}

/** Throws where a slot cannot reach and write its directory. */
export function probeDirectory(confine: readonly string[], directory: string): void {
  if (process.platform !== "linux" || run([...confine, "test", "-w", directory]) === undefined) return;
  throw new Error(`browsers cannot write in ${directory}: every directory above it must let all users through`);
}

/** Runs a command and gives undefined when it succeeds, else what it says. */
function run([command = "", ...parameters]: readonly string[]): string | undefined {
  const { status, stderr, error } = spawnSync(command, parameters, { encoding: "utf8", timeout: probeMs, cwd: "/" });
  return status === 0 ? undefined : (error?.message ?? stderr.trim());
}

function hasSetuidHelper(executable: string): boolean {
  const helper = statSync(join(dirname(executable), "chrome-sandbox"), { throwIfNoEntry: false });
  return helper !== undefined && helper.uid === 0 && (helper.mode & 0o4111) === 0o4111;
}
