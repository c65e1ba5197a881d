import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import type { Clock } from "./clock.ts";

/** Milliseconds between reads. Unlike a file watcher, reads also detect a replaced symbolic link to the directory. */
const readEvery = 10_000;

/** Paths of PEM files: a certificate, its key, and optionally the trusted authorities. */
type Paths = Readonly<Record<"cert" | "key", string> & { ca?: string }>;

type Contents<Files extends Paths> = Readonly<Record<keyof Files, Buffer>>;

/** Log methods that the logs of the service and of workers have in common. */
export type CertificateLog = Readonly<Record<"info" | "error", (fields: object, message: string) => void>>;

/** Files of a certificate. After `start`, reads them again at an interval. */
export class CertificateFiles<Files extends Paths> {
  readonly #files: Files;
  readonly #clock: Pick<Clock, "every">;
  readonly #log: CertificateLog;
  #current: Contents<Files>;
  #lastError = "";
  #stop: (() => void) | undefined;

  /** Reads the files. Throws if a file cannot be read. */
  constructor(files: Files, { clock, log }: { clock: Pick<Clock, "every">; log: CertificateLog }) {
    this.#files = files;
    this.#clock = clock;
    this.#log = log;
    this.#current = this.#read();
  }

  get current(): Contents<Files> {
    return this.#current;
  }

  /** Reads the files again, at once and every 10 s until `stop`. Calls the listener if valid contents have changed. */
  start(onChange: (next: Contents<Files>) => void): void {
    const readAgain = () => this.#readAgain(onChange);
    readAgain();
    this.#stop ??= this.#clock.every(readEvery, readAgain);
  }

  stop(): void {
    this.#stop?.();
    this.#stop = undefined;
  }

  #readAgain(onChange: (next: Contents<Files>) => void): void {
    const { cert: file } = this.#files;
    try {
      const next = this.#read();
      const names = Object.keys(next) as (keyof Files)[];
      if (names.every((name) => next[name].equals(this.#current[name]))) return;
      // Throws while only one file of a pair has been replaced.
      createSecureContext(next);
      // A secure context ignores an authority that cannot be parsed, and then trusts none.
      if ("ca" in next) new X509Certificate(next.ca);
      this.#current = next;
      this.#lastError = "";
      onChange(next);
      this.#log.info({ file }, "the certificate was replaced");
    } catch (error) {
      const { message } = error as Error;
      if (message === this.#lastError) return;
      this.#lastError = message;
      this.#log.error({ err: error, file }, "failed to read the certificate again; the previous one stays in use");
    }
  }

  #read(): Contents<Files> {
    const read = Object.entries(this.#files).map(([name, path]) => [name, readFileSync(path)]);
    // Cast: the names are those of the files.
    return Object.fromEntries(read) as Contents<Files>;
  }
}
