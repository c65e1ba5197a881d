import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FleetTlsFiles } from "../../src/platform/grpc/fleet-certificates.ts";

/** Certificate authority of one test, created by openssl. */
export class CertificateAuthority implements Disposable {
  readonly #directory = mkdtempSync(join(tmpdir(), "certificates-"));

  constructor() {
    const subject = ["-subj", "/CN=Test CA", "-days", "2"];
    this.#openssl("req", "-x509", ...newKey, "-keyout", "ca.key", "-out", "ca.pem", ...subject);
  }

  /** Creates a certificate for a name and for loopback addresses. */
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

/** Elliptic-curve keys, which take only milliseconds to generate. */
const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"] as const;

/** Returns the environment variables with a process's certificates. */
export function fleetTlsVariables({ cert, key, ca }: FleetTlsFiles): Record<string, string> {
  return { FLEET_TLS_CERT: cert, FLEET_TLS_KEY: key, FLEET_TLS_CA: ca };
}
