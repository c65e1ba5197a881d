import { createHash } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** What a registration gave the worker, by which it comes back as itself. */
export interface Identity {
  readonly workerId: string;
  readonly workerSecret: string;
}

/** Keeps a worker's identity in its directory, which nobody else may read. */
export class IdentityFile {
  readonly #directory: string;
  readonly #path: string;

  constructor(dataDir: string, index: number) {
    this.#directory = join(dataDir, "workers", String(index));
    this.#path = join(this.#directory, "identity.json");
  }

  /** Makes the directory and notes which process runs in its name. */
  async claim(pid: number): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    await writeFile(join(this.#directory, "pid"), `${pid}\n`, { mode: 0o600 });
  }

  /** Reads the identity; undefined when the worker has never been registered, or the file is damaged. */
  async read(): Promise<Identity | undefined> {
    try {
      const json: unknown = JSON.parse(await readFile(this.#path, "utf8"));
      if (typeof json !== "object" || json === null) return undefined;
      const { workerId, workerSecret } = json as Record<string, unknown>;
      return typeof workerId === "string" && typeof workerSecret === "string" ? { workerId, workerSecret } : undefined;
    } catch {
      return undefined;
    }
  }

  /** Writes the identity so that a crash leaves the old or the new one. */
  async write(identity: Identity): Promise<void> {
    const next = `${this.#path}.new`;
    await writeFile(next, JSON.stringify(identity), { mode: 0o600, flush: true });
    await rename(next, this.#path);
  }
}

/** What a gateway shows to prove that it knows the worker. */
export function hashSecret(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}
