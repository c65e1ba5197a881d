import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { getCACertificates } from "node:tls";
import type { Config } from "../config.ts";
import { StartRefused } from "../start-refused.ts";

/** Options for connections to servers of customers and providers. */
export interface OutgoingOptions {
  /** HTTP proxy for public addresses (`OUTGOING_PROXY`). */
  readonly proxy?: URL | undefined;
  /** Trusted certificate authorities. Default: those of Node. */
  readonly ca?: string | readonly string[] | undefined;
}

/** Reads the options from the configuration. Throws StartRefused if the file of authorities cannot be used. */
export function readOutgoingOptions({ outgoingProxy, outgoingCaFile }: OutgoingConfig): OutgoingOptions {
  return {
    proxy: outgoingProxy === undefined ? undefined : new URL(outgoingProxy),
    ca: outgoingCaFile === undefined ? undefined : [...getCACertificates("default"), readAuthorities(outgoingCaFile)],
  };
}

type OutgoingConfig = Pick<Config, "outgoingProxy" | "outgoingCaFile">;

function readAuthorities(file: string): string {
  try {
    const text = readFileSync(file, "utf8");
    // Throws if the file does not start with a certificate.
    void new X509Certificate(text);
    return text;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StartRefused(`OUTGOING_CA_FILE cannot be used: ${reason}. Set it to a file of certificates in PEM`, {
      cause: error,
    });
  }
}
