import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A replacement in a source file. */
export interface SourceChange {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** A copy of the sources. */
export interface ChangedSources extends AsyncDisposable {
  readonly root: string;
}

/** Copies the sources with one replacement, to show that a bench fails without a protection. */
export async function copyChanged({ file, from, to }: SourceChange): Promise<ChangedSources> {
  const root = await mkdtemp(join(tmpdir(), "pilothouse-changed-"));
  for (const part of ["gateway", "src", "proto", "test/support", "tools", "package.json"])
    await cp(part, join(root, part), { recursive: true });
  await symlink(join(process.cwd(), "node_modules"), join(root, "node_modules"));
  const path = join(root, file);
  const pieces = (await readFile(path, "utf8")).split(from);
  if (pieces.length !== 2) throw new Error(`${file} must contain exactly once: ${from}`);
  await writeFile(path, pieces.join(to));
  return { root, [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }) };
}
