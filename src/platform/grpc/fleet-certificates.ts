import type { experimental } from "@grpc/grpc-js";
import { CertificateFiles, type CertificateLog } from "../certificate-files.ts";
import type { Clock } from "../clock.ts";
import type { EnvironmentReader } from "../environment.ts";

/** Files for mutual TLS between gateways and workers. Both certificates are issued by a CA used for nothing else. */
export interface FleetTlsFiles {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

/** Reads the TLS files. Returns undefined if connections are in clear text. */
export function readFleetTls(read: EnvironmentReader): FleetTlsFiles | undefined {
  const files = read.together("FLEET_TLS_CERT", "FLEET_TLS_KEY", "FLEET_TLS_CA");
  return files && { cert: files.FLEET_TLS_CERT, key: files.FLEET_TLS_KEY, ca: files.FLEET_TLS_CA };
}

type Listener<Update> = (update: Update | null) => void;

/** Timers that do not keep the process alive: a channel outlives its client by some seconds. */
const background: Pick<Clock, "every"> = {
  every(milliseconds, run) {
    const timer = setInterval(run, milliseconds).unref();
    return () => clearInterval(timer);
  },
};

/** Certificate and authority of the fleet. Reads replaced files while listeners exist. Open connections continue. */
export class FleetCertificates implements experimental.CertificateProvider {
  readonly #files: CertificateFiles<FleetTlsFiles>;
  readonly #onAuthority = new Set<Listener<experimental.CaCertificateUpdate>>();
  readonly #onIdentity = new Set<Listener<experimental.IdentityCertificateUpdate>>();

  /** Reads the files. Throws if a file cannot be read. */
  constructor(files: FleetTlsFiles, log: CertificateLog) {
    this.#files = new CertificateFiles(files, { clock: background, log });
  }

  addCaCertificateListener(listener: Listener<experimental.CaCertificateUpdate>): void {
    this.#onAuthority.add(listener);
    // Deferred, because a server adds the listener of its secure context only after this call.
    process.nextTick(() => listener(this.#authority));
    this.#watch();
  }

  removeCaCertificateListener(listener: Listener<experimental.CaCertificateUpdate>): void {
    this.#onAuthority.delete(listener);
    this.#watch();
  }

  addIdentityCertificateListener(listener: Listener<experimental.IdentityCertificateUpdate>): void {
    this.#onIdentity.add(listener);
    process.nextTick(() => listener(this.#identity));
    this.#watch();
  }

  removeIdentityCertificateListener(listener: Listener<experimental.IdentityCertificateUpdate>): void {
    this.#onIdentity.delete(listener);
    this.#watch();
  }

  get #authority(): experimental.CaCertificateUpdate {
    return { caCertificate: this.#files.current.ca };
  }

  get #identity(): experimental.IdentityCertificateUpdate {
    const { cert: certificate, key: privateKey } = this.#files.current;
    return { certificate, privateKey };
  }

  #watch(): void {
    if (this.#onAuthority.size + this.#onIdentity.size === 0) {
      this.#files.stop();
      return;
    }
    // The files may have changed while there was no listener.
    this.#files.start(() => {
      for (const listener of this.#onAuthority) listener(this.#authority);
      for (const listener of this.#onIdentity) listener(this.#identity);
    });
  }
}
