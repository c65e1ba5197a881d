import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FleetTlsFiles } from "../../src/platform/grpc/fleet-tls.ts";

/** A certificate authority of a test's own, made by openssl. */
export class CertificateAuthority implements Disposable {
  readonly #directory = mkdtempSync(join(tmpdir(), "certificates-"));

  constructor() {
    const subject = ["-subj", "/CN=Test CA", "-days", "2"];
    this.#openssl("req", "-x509", ...newKey, "-keyout", "ca.key", "-out", "ca.pem", ...subject);
  }

  /** Makes a certificate that is good for loopback by address, and for a name. */
  issue(name: string): FleetTlsFiles {
    this.#openssl("req", ...newKey, "-keyout", `${name}.key`, "-out", `${name}.csr`, "-subj", `/CN=${name}`);
    writeFileSync(join(this.#directory, `${name}.ext`), `subjectAltName=DNS:${name},IP:127.0.0.1\n`);
    const files = ["-in", `${name}.csr`, "-out", `${name}.pem`, "-extfile", `${name}.ext`];
    this.#openssl("x509", "-req", ...files, "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2");
    const path = (file: string): string => join(this.#directory, file);
    return { cert: path(`${name}.pem`), key: path(`${name}.key`), ca: path("ca.pem") };
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #openssl(...args: readonly string[]): void {
    execFileSync("openssl", args, { cwd: this.#directory, stdio: ["ignore", "ignore", "pipe"], timeout: 20_000 });
  }
}

/** Elliptic-curve keys: they are made in a few milliseconds. */
const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"] as const;

/** What tells a process of its certificates. */
export function fleetTlsVariables({ cert, key, ca }: FleetTlsFiles): Record<string, string> {
  return { FLEET_TLS_CERT: cert, FLEET_TLS_KEY: key, FLEET_TLS_CA: ca };
}
