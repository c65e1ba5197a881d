import { readFileSync } from "node:fs";
import { ChannelCredentials, type ChannelOptions, ServerCredentials } from "@grpc/grpc-js";
import type { EnvironmentReader } from "../environment.ts";

/** Files of the mutual TLS of the fleet link: both sides show a certificate of one CA, which signs nothing else. */
export interface FleetTlsFiles {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

/** Reads the variables of a gateway or a worker; undefined is a link in clear text. */
export function readFleetTls(read: EnvironmentReader): FleetTlsFiles | undefined {
  const files = read.together("FLEET_TLS_CERT", "FLEET_TLS_KEY", "FLEET_TLS_CA");
  return files && { cert: files.FLEET_TLS_CERT, key: files.FLEET_TLS_KEY, ca: files.FLEET_TLS_CA };
}

/** What the calling side shows and asks for. */
export function fleetClientCredentials(tls: FleetTlsFiles | undefined): ChannelCredentials {
  if (!tls) return ChannelCredentials.createInsecure();
  return ChannelCredentials.createSsl(readFileSync(tls.ca), readFileSync(tls.key), readFileSync(tls.cert));
}

/** What the called side shows, and asks of every caller. */
export function fleetServerCredentials(tls: FleetTlsFiles | undefined): ServerCredentials {
  if (!tls) return ServerCredentials.createInsecure();
  const pair = { private_key: readFileSync(tls.key), cert_chain: readFileSync(tls.cert) };
  return ServerCredentials.createSsl(readFileSync(tls.ca), [pair], true);
}

/** Options of a channel that dials an address in place of a name: the certificate is still the name's. */
export function dialledAs(name: string): ChannelOptions {
  return { "grpc.ssl_target_name_override": name, "grpc.default_authority": name };
}
