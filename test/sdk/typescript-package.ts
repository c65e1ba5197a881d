import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

const sdk = join(import.meta.dirname, "../../sdk/typescript");

/** Packs the TypeScript SDK into a directory, and returns the name of the tarball. */
export async function packSdk(directory: string): Promise<string> {
  const packed = await promisify(execFile)("npm", ["pack", "--pack-destination", directory], { cwd: sdk });
  return packed.stdout.trim().split("\n").at(-1) ?? "";
}
