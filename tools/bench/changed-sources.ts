import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A place in the sources, and what is to stand there. */
export interface SourceChange {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** A copy of the sources. */
export interface ChangedSources extends AsyncDisposable {
  readonly root: string;
}

/** Copies the sources with one place changed into a directory of their own: a bench is to fail where a protection is gone. */
export async function copyChanged({ file, from, to }: SourceChange): Promise<ChangedSources> {
  const root = await mkdtemp(join(tmpdir(), "pilothouse-changed-"));
  for (const part of ["gateway", "src", "proto", "test/support", "tools", "package.json"])
    await cp(part, join(root, part), { recursive: true });
  await symlink(join(process.cwd(), "node_modules"), join(root, "node_modules"));
  const path = join(root, file);
  const pieces = (await readFile(path, "utf8")).split(from);
  if (pieces.length !== 2) throw new Error(`${file} is to have once: ${from}`);
  await writeFile(path, pieces.join(to));
  return { root, [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }) };
}
