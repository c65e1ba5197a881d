import { execFile } from "node:child_process";
import { mkdtempDisposable, readFile, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";

/** Code of the previous release in a directory of its own. */
export interface PreviousRelease extends AsyncDisposable {
  readonly root: string;
}

/** Timeout of a command in milliseconds. Installing packages takes the longest. */
const timeout = 600_000;

const run = promisify(execFile);

/** Returns the installed packages of a checkout as text. */
async function packagesOf(root: string): Promise<string> {
  const { packages } = JSON.parse(await readFile(join(root, "package-lock.json"), "utf8"));
  return JSON.stringify({ ...packages, "": undefined });
}

/** Returns the commit of `release/previous`. */
export const previousCommit = async (): Promise<string> => (await readFile("release/previous", "utf8")).trim();

/** Checks out the commit of `release/previous`. */
export async function extractPrevious(): Promise<PreviousRelease> {
  await using stack = new AsyncDisposableStack();
  const root = stack.use(await mkdtempDisposable(join(tmpdir(), "pilothouse-previous-"))).path;
  const archive = join(root, "release.tar");
  await run("git", ["archive", "--output", archive, await previousCommit()], { timeout });
  await run("tar", ["-xf", archive, "-C", root], { timeout });
  const owner = stack.move();
  return { root, [Symbol.asyncDispose]: () => owner.disposeAsync() };
}

/** Checks out the previous release and prepares its code. Reuses our packages if they are the same. */
export async function checkOutPrevious(): Promise<PreviousRelease> {
  await using stack = new AsyncDisposableStack();
  const { root } = stack.use(await extractPrevious());
  const env = { ...process.env, PATH: `${join(root, "node_modules/.bin")}:${process.env.PATH}`, PREPARE: "off" };
  if ((await packagesOf(".")) === (await packagesOf(root)))
    await symlink(resolve("node_modules"), `${root}/node_modules`);
  else await run("npm", ["ci", "--loglevel=error", "--no-audit", "--no-fund"], { cwd: root, env, timeout });
  await run("sh", ["tools/generate-code.sh"], { cwd: root, env, timeout });
  const owner = stack.move();
  return { root, [Symbol.asyncDispose]: () => owner.disposeAsync() };
}
