import { runAdmin } from "../../tools/admin/run-admin.ts";

/** Runs a command of the operator in this process, and gives its exit code and what it prints. */
export async function runAdminHere(env: Readonly<Record<string, string>>, ...args: readonly string[]) {
  let [stdout, stderr] = ["", ""];
  const status = await runAdmin(args, env, {
    stdout: { write: (text) => (stdout += text) },
    stderr: { write: (text) => (stderr += text) },
  });
  return { status, stdout, stderr };
}

/** Runs a command of the operator, and gives what it prints. Rejects when it refuses. */
export async function admin(env: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<string> {
  const { status, stdout, stderr } = await runAdminHere(env, ...args);
  if (status !== 0) throw new Error(stderr);
  return stdout.trim();
}
