import { readFileSync } from "node:fs";
import { ChannelCredentials, type ChannelOptions, ServerCredentials } from "@grpc/grpc-js";
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

/** Creates the credentials of the calling side. */
export function fleetClientCredentials(tls: FleetTlsFiles | undefined): ChannelCredentials {
  if (!tls) return ChannelCredentials.createInsecure();
  return ChannelCredentials.createSsl(readFileSync(tls.ca), readFileSync(tls.key), readFileSync(tls.cert));
}

/** Creates the credentials of the called side, which requires client certificates. */
export function fleetServerCredentials(tls: FleetTlsFiles | undefined): ServerCredentials {
  if (!tls) return ServerCredentials.createInsecure();
  const pair = { private_key: readFileSync(tls.key), cert_chain: readFileSync(tls.cert) };
  return ServerCredentials.createSsl(readFileSync(tls.ca), [pair], true);
}

/** Returns channel options for an address whose certificate is issued for `name`. */
export function dialledAs(name: string): ChannelOptions {
  return { "grpc.ssl_target_name_override": name, "grpc.default_authority": name };
}
