import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { randomText } from "../platform/ids.ts";

/** 5 bits per character: 200 random bits. */
const tokenLength = 40;

/** Reads or creates the WORKER_TOKEN of embedded mode. Keeping the token lets a surviving worker register again. */
export async function ensureWorkerToken(dataDir: string): Promise<string> {
  const path = join(dataDir, "worker-token");
  const found = await readFile(path, "utf8").catch(() => "");
  if (found.length === tokenLength) return found;
  const token = randomText(tokenLength);
  await writeFile(`${path}.new`, token, { mode: 0o600 });
  await rename(`${path}.new`, path);
  return token;
}
