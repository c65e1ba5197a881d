import { runAdmin } from "../../tools/admin/run-admin.ts";

/** Runs an operator command in this process. Returns its exit code and output. */
export async function runAdminHere(env: Readonly<Record<string, string>>, ...args: readonly string[]) {
  let [stdout, stderr] = ["", ""];
  const status = await runAdmin(args, env, {
    stdout: { write: (text) => (stdout += text) },
    stderr: { write: (text) => (stderr += text) },
  });
  return { status, stdout, stderr };
}

/** Runs an operator command and returns its output. Rejects if the command fails. */
export async function admin(env: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<string> {
  const { status, stdout, stderr } = await runAdminHere(env, ...args);
  if (status !== 0) throw new Error(stderr);
  return stdout.trim();
}
