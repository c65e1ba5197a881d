import { type ChildProcess, spawn } from "node:child_process";
import { createReadStream, createWriteStream } from "node:fs";
import { pipeline as chain } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createZstdCompress, createZstdDecompress } from "node:zlib";
import { confineCommand } from "../isolation/confinement.ts";
import { type ProfileManifest, readManifest, writeManifest } from "./profile-manifest.ts";
import { guardTar } from "./tar-guard.ts";

/** The largest store, compressed. */
const largest = 32 * 2 ** 20;

/** How long packing and unpacking may take; 20 sites take 20 and 30 ms. */
const packMs = 5_000;
const unpackMs = 10_000;

/**
 * Where both runtimes keep localStorage and IndexedDB. Links, sockets and the like are left behind, and times, which
 * would take a second header for each file.
 */
const pack = `
  find "Default/Local Storage" Default/WebStorage Default/IndexedDB -type f -print0 2>/dev/null |
    tar --create --format=pax --pax-option=delete=atime,delete=ctime --mtime=@0 --no-recursion --null --files-from=- \\
      --file=-`;

/** Older stores hold two archives, one behind the other. */
const unpack = "tar --extract --ignore-zeros --touch --no-same-owner --no-same-permissions --file=-";

/** A browser's directory, which pages have filled: whoever looks into it does so as the slot's uid. */
export interface ProfileDirectory {
  readonly path: string;
  readonly uid: number | undefined;
}

/** Packs what a browser that has ended keeps of the web, with a manifest, into a file. Gives its size. */
export async function packProfile(
  directory: ProfileDirectory,
  manifest: ProfileManifest,
  target: string,
): Promise<number> {
  const tar = new ConfinedShell(directory, pack, AbortSignal.timeout(packMs));
  const file = createWriteStream(target, { mode: 0o600, flush: true });
  const store = async function* () {
    yield writeManifest(manifest);
    yield* guardTar(tar.output());
  };
  await pipeline(store, createZstdCompress(), boundSize, file);
  return file.bytesWritten;
}

/** Unpacks a store into the empty directory of a browser; `check` throws on one that must not be. */
export async function unpackProfile(
  source: string,
  directory: ProfileDirectory,
  signal: AbortSignal,
  check: (manifest: ProfileManifest) => void,
): Promise<ProfileManifest> {
  // What goes wrong on the way is told by the last stream.
  const store = chain(createReadStream(source), createZstdDecompress(), () => undefined);
  try {
    const { manifest, files } = await readManifest(store);
    check(manifest);
    const tar = new ConfinedShell(directory, unpack, AbortSignal.any([signal, AbortSignal.timeout(unpackMs)]));
    await tar.input(guardTar(files));
    return manifest;
  } finally {
    store.destroy();
  }
}

async function* boundSize(store: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  let bytes = 0;
  for await (const chunk of store) {
    bytes += chunk.length;
    if (bytes > largest) throw new Error(`the profile takes more than ${largest} bytes, compressed`);
    yield chunk;
  }
}

/** A shell command in a browser's directory, with the rights of its slot and no others. */
class ConfinedShell {
  readonly #child: ChildProcess;
  readonly #exit: Promise<void>;
  #complaint = "";

  constructor({ path, uid }: ProfileDirectory, script: string, signal: AbortSignal) {
    const [command = "", ...parameters] = [...confineCommand([], uid, "namespaces"), "sh", "-c", script];
    this.#child = spawn(command, parameters, {
      cwd: path,
      // Nothing of the worker's environment.
      env: { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C.UTF-8" },
      // A group of its own, which is killed as one.
      detached: true,
    });
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#complaint = (this.#complaint + text).slice(0, 1_000);
    });
    this.#exit = this.#ended();
    // Whoever reads or writes awaits the exit too; a failure before that must not end the worker.
    this.#exit.catch(() => undefined);
    const kill = () => this.#kill();
    if (signal.aborted) kill();
    signal.addEventListener("abort", kill, { once: true });
  }

  /** Gives what the command writes; throws when it fails. */
  async *output(): AsyncGenerator<Buffer, void, undefined> {
    if (this.#child.stdout) yield* this.#child.stdout;
    await this.#exit;
  }

  /** Gives the command something to read, and resolves when it has ended well. */
  async input(source: AsyncIterable<Buffer>): Promise<void> {
    const { stdin } = this.#child;
    // A command that ends early says why by its status.
    if (stdin) await pipeline(source, stdin).catch((error: NodeJS.ErrnoException) => this.#explain(error));
    await this.#exit;
  }

  async #explain(error: NodeJS.ErrnoException): Promise<void> {
    if (error.code !== "EPIPE") throw error;
  }

  #ended(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#child.once("error", reject);
      this.#child.once("close", (status, signal) => {
        if (status === 0) resolve();
        else reject(new Error(`tar ended with ${signal ?? status}: ${this.#complaint.trim()}`));
      });
    });
  }

  #kill(): void {
    const { pid, exitCode, signalCode } = this.#child;
    if (pid === undefined || exitCode !== null || signalCode !== null) return;
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // It has ended meanwhile.
    }
  }
}
