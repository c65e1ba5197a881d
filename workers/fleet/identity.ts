import { createHash } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Worker credentials from registration, which survive a restart. */
export interface Identity {
  readonly workerId: string;
  readonly workerSecret: string;
}

/** Stores a worker's identity in its private directory. */
export class IdentityFile {
  readonly #directory: string;
  readonly #path: string;

  constructor(dataDir: string, index: number) {
    this.#directory = join(dataDir, "workers", String(index));
    this.#path = join(this.#directory, "identity.json");
  }

  /** Creates the directory and writes the pid of the running process. */
  async claim(pid: number): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    await writeFile(join(this.#directory, "pid"), `${pid}\n`, { mode: 0o600 });
  }

  /** Returns the identity, or undefined if the worker was never registered or the file is damaged. */
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

  /** Writes the identity atomically. */
  async write(identity: Identity): Promise<void> {
    const next = `${this.#path}.new`;
    await writeFile(next, JSON.stringify(identity), { mode: 0o600, flush: true });
    await rename(next, this.#path);
  }
}

/** Returns the hash that a gateway sends to prove that it knows the worker. */
export function hashControlSecret(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}
