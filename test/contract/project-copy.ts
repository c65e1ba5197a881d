import { cp, mkdir, mkdtemp, readdir, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

const root = join(import.meta.dirname, "../..");
const notCopied = new Set([".git", ".cache", "node_modules"]);

/**
 * Copies the project into a temporary directory. The node_modules of the copy contains links and is marked as current,
 * so that the packages of the project stay unchanged.
 */
export async function copyProject(): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), "pilothouse-copy-"));
  const filter = (path: string) => !notCopied.has(basename(path));
  await cp(root, copy, { recursive: true, preserveTimestamps: true, filter });
  const packages = join(copy, "node_modules");
  await mkdir(packages);
  for (const entry of await readdir(join(root, "node_modules"))) {
    if (entry !== ".installed-lock.json") await symlink(join(root, "node_modules", entry), join(packages, entry));
  }
  await cp(join(root, "package-lock.json"), join(packages, ".installed-lock.json"));
  return copy;
}
