import { type ChildProcess, spawn } from "node:child_process";
import { createReadStream, createWriteStream } from "node:fs";
import { pipeline as chain } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createZstdCompress, createZstdDecompress } from "node:zlib";
import { type ProfileManifest, readManifest, writeManifest } from "../../src/platform/profile-format.ts";
import { confineCommand } from "../isolation/confinement.ts";
import type { Cookie } from "./profile-cookies.ts";
import { guardTar } from "./tar-guard.ts";

/** Maximum bytes of a packed profile, compressed. */
const largest = 32 * 2 ** 20;

/** Timeout of packing in milliseconds. Packing 20 sites takes 20 ms. */
const packMs = 5_000;
/** Timeout of unpacking in milliseconds. Unpacking 20 sites takes 30 ms. */
const unpackMs = 10_000;

/**
 * Packs the directories in which both runtimes store localStorage and IndexedDB. Only regular files are included.
 * Timestamps are omitted, because timestamps would need a second header per file.
 */
const pack = `
  find "Default/Local Storage" Default/WebStorage Default/IndexedDB -type f -print0 2>/dev/null |
    tar --create --format=pax --pax-option=delete=atime,delete=ctime --mtime=@0 --no-recursion --null --files-from=- \\
      --file=-`;

/** Zeros between archives are ignored, because older packed profiles contain two concatenated archives. */
const unpack = "tar --extract --ignore-zeros --touch --no-same-owner --no-same-permissions --file=-";

/** A browser's profile directory. Its content comes from pages, so packing and unpacking run with the slot's uid. */
export interface ProfileDirectory {
  readonly path: string;
  readonly uid: number | undefined;
}

/** Packs the web storage of an ended browser, with a manifest, into a file. Resolves with the file size. */
export async function packProfile(
  directory: ProfileDirectory,
  manifest: ProfileManifest<Cookie>,
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

/**
 * Unpacks a profile into an empty profile directory. Resolves with the profile's manifest. `check` can throw to reject
 * the manifest before any file is written.
 */
export async function unpackProfile(
  source: string,
  directory: ProfileDirectory,
  signal: AbortSignal,
  check: (manifest: ProfileManifest<Cookie>) => void,
): Promise<ProfileManifest<Cookie>> {
  // Errors are ignored here, because the last stream reports them.
  const store = chain(createReadStream(source), createZstdDecompress(), () => undefined);
  try {
    const { manifest, files } = await readManifest<Cookie>(store);
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
    if (bytes > largest) throw new Error(`the compressed profile exceeds ${largest} bytes`);
    yield chunk;
  }
}

/** A shell command in a profile directory, confined to the slot's uid. */
class ConfinedShell {
  readonly #child: ChildProcess;
  readonly #exit: Promise<void>;
  #errorOutput = "";

  constructor({ path, uid }: ProfileDirectory, script: string, signal: AbortSignal) {
    const [command = "", ...parameters] = [...confineCommand([], uid, "namespaces"), "sh", "-c", script];
    this.#child = spawn(command, parameters, {
      cwd: path,
      // The command must not receive the worker's environment.
      env: { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C.UTF-8" },
      // The command has its own process group, so that all its processes can be killed together.
      detached: true,
    });
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#errorOutput = (this.#errorOutput + text).slice(0, 1_000);
    });
    this.#exit = this.#ended();
    // `input` and `output` await the exit later. Without a handler, an earlier failure would crash the worker.
    this.#exit.catch(() => undefined);
    const kill = () => this.#kill();
    if (signal.aborted) kill();
    signal.addEventListener("abort", kill, { once: true });
  }

  /** Yields the command's output. Throws if the command fails. */
  async *output(): AsyncGenerator<Buffer, void, undefined> {
    if (this.#child.stdout) yield* this.#child.stdout;
    await this.#exit;
  }

  /** Writes to the command's input. Resolves when the command has succeeded. */
  async input(source: AsyncIterable<Buffer>): Promise<void> {
    const { stdin } = this.#child;
    // If the command ends early, its exit status is the more specific error.
    if (stdin) await pipeline(source, stdin).catch((error: NodeJS.ErrnoException) => this.#ignoreBrokenPipe(error));
    await this.#exit;
  }

  async #ignoreBrokenPipe(error: NodeJS.ErrnoException): Promise<void> {
    if (error.code !== "EPIPE") throw error;
  }

  #ended(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#child.once("error", reject);
      this.#child.once("close", (status, signal) => {
        if (status === 0) resolve();
        else reject(new Error(`tar failed with ${signal ?? status}: ${this.#errorOutput.trim()}`));
      });
    });
  }

  #kill(): void {
    const { pid, exitCode, signalCode } = this.#child;
    if (pid === undefined || exitCode !== null || signalCode !== null) return;
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // The process has ended.
    }
  }
}
