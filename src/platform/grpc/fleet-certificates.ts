import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import type { experimental } from "@grpc/grpc-js";

/** Milliseconds between two reads while a server listens or a channel is open. */
const readEvery = 10_000;

/** Files for mutual TLS between gateways and workers. Both certificates are issued by a CA used for nothing else. */
export interface FleetTlsFiles {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

interface Contents {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly ca: Buffer;
}

type Listener<Update> = (update: Update | null) => void;

/** The fleet's certificate and authority, whose files are read again while they are used. Open connections continue. */
export class FleetCertificates implements experimental.CertificateProvider {
  readonly #files: FleetTlsFiles;
  readonly #onAuthority = new Set<Listener<experimental.CaCertificateUpdate>>();
  readonly #onIdentity = new Set<Listener<experimental.IdentityCertificateUpdate>>();
  #current: Contents;
  #timer: NodeJS.Timeout | undefined;

  /** Reads the files. Throws if one of them cannot be read. */
  constructor(files: FleetTlsFiles) {
    this.#files = files;
    this.#current = { cert: readFileSync(files.cert), key: readFileSync(files.key), ca: readFileSync(files.ca) };
  }

  addCaCertificateListener(listener: Listener<experimental.CaCertificateUpdate>): void {
    this.#onAuthority.add(listener);
    // A server registers the listener of its own context after this call.
    process.nextTick(() => listener({ caCertificate: this.#current.ca }));
    this.#watch();
  }

  removeCaCertificateListener(listener: Listener<experimental.CaCertificateUpdate>): void {
    this.#onAuthority.delete(listener);
    this.#watch();
  }

  addIdentityCertificateListener(listener: Listener<experimental.IdentityCertificateUpdate>): void {
    this.#onIdentity.add(listener);
    process.nextTick(() => listener({ certificate: this.#current.cert, privateKey: this.#current.key }));
    this.#watch();
  }

  removeIdentityCertificateListener(listener: Listener<experimental.IdentityCertificateUpdate>): void {
    this.#onIdentity.delete(listener);
    this.#watch();
  }

  #watch(): void {
    const isUsed = this.#onAuthority.size + this.#onIdentity.size > 0;
    if (isUsed && !this.#timer) {
      // The files may have changed while nothing used them.
      void this.#readAgain();
      // Channels outlive their clients by some seconds, which must not keep the process alive.
      this.#timer = setInterval(() => void this.#readAgain(), readEvery).unref();
    } else if (!isUsed) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }

  /** Keeps the previous contents if a file is missing, or if only one file of a pair has been replaced yet. */
  async #readAgain(): Promise<void> {
    try {
      const [cert, key, ca] = await Promise.all([this.#files.cert, this.#files.key, this.#files.ca].map(readBytes));
      const { cert: oldCert, key: oldKey, ca: oldCa } = this.#current;
      if (!cert || !key || !ca || (cert.equals(oldCert) && key.equals(oldKey) && ca.equals(oldCa))) return;
      createSecureContext({ cert, key, ca });
      this.#current = { cert, key, ca };
    } catch {
      return;
    }
    const { cert: certificate, key: privateKey, ca: caCertificate } = this.#current;
    for (const listener of this.#onAuthority) listener({ caCertificate });
    for (const listener of this.#onIdentity) listener({ certificate, privateKey });
  }
}

const readBytes = (path: string): Promise<Buffer> => readFile(path);
