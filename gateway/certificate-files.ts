import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import type { Clock } from "../src/platform/clock.ts";
import type { TlsFiles } from "../src/platform/config.ts";
import type { Log } from "../src/platform/log.ts";
import type { Certificate } from "./listener.ts";

/** Milliseconds between two reads. Reading also finds files whose directory is a replaced symbolic link. */
const readEvery = 10_000;

/** The files of a certificate, which are read again while the process runs. */
export interface CertificateFiles {
  /** The certificate at the start. */
  readonly first: Certificate;
  /** Calls the listener with each new certificate until `stop`. */
  start(onChange: (certificate: Certificate) => void): void;
  stop(): void;
}

/** Reads the certificate. Throws if a file cannot be read. */
export function openCertificate({ cert, key }: TlsFiles, { clock, log }: { clock: Clock; log: Log }): CertificateFiles {
  const first = { cert: readFileSync(cert), key: readFileSync(key) };
  let current: Certificate = first;
  let complaint = "";
  let stop: (() => void) | undefined;

  async function readAgain(onChange: (certificate: Certificate) => void): Promise<void> {
    try {
      const next = { cert: await readFile(cert), key: await readFile(key) };
      if (next.cert.equals(current.cert) && next.key.equals(current.key)) return;
      // Throws if only one of both files has been replaced yet.
      createSecureContext(next);
      current = next;
      complaint = "";
      onChange(next);
      log.info({ file: cert }, "the certificate was replaced");
    } catch (error) {
      const { message } = error as Error;
      if (message === complaint) return;
      complaint = message;
      log.error({ err: error, file: cert }, "failed to read the certificate again; the previous one stays in use");
    }
  }

  return {
    first,
    start(onChange) {
      stop = clock.every(readEvery, () => void readAgain(onChange));
    },
    stop: () => stop?.(),
  };
}
