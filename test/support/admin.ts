import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Runs a command of the operator in an environment, and gives what it prints. Rejects when it refuses. */
export async function admin(env: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<string> {
  const options = { env: { ...process.env, ...env }, timeout: 60_000 };
  const { stdout } = await promisify(execFile)(process.execPath, ["tools/admin.ts", ...args], options);
  return stdout.trim();
}
