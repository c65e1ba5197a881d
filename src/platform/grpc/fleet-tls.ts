import { ChannelCredentials, type ChannelOptions, experimental, ServerCredentials } from "@grpc/grpc-js";
import type { CertificateLog } from "../certificate-files.ts";
import { FleetCertificates, type FleetTlsFiles } from "./fleet-certificates.ts";

/** Creates the credentials of the calling side. */
export function fleetClientCredentials(tls: FleetTlsFiles | undefined, log: CertificateLog): ChannelCredentials {
  if (!tls) return ChannelCredentials.createInsecure();
  const certificates = certificatesOf(tls, log);
  return experimental.createCertificateProviderChannelCredentials(certificates, certificates);
}

/** Creates the credentials of the called side, which requires client certificates. */
export function fleetServerCredentials(tls: FleetTlsFiles | undefined, log: CertificateLog): ServerCredentials {
  if (!tls) return ServerCredentials.createInsecure();
  const certificates = certificatesOf(tls, log);
  return experimental.createCertificateProviderServerCredentials(certificates, certificates, true);
}

/** Certificates of a process by their files, so that all its channels share one reader. */
const known = new WeakMap<FleetTlsFiles, FleetCertificates>();

function certificatesOf(tls: FleetTlsFiles, log: CertificateLog): FleetCertificates {
  const found = known.get(tls) ?? new FleetCertificates(tls, log);
  known.set(tls, found);
  return found;
}

/** Returns channel options for a server with a certificate that is issued for `name`. */
export function tlsNameOptions(name: string): ChannelOptions {
  return { "grpc.ssl_target_name_override": name, "grpc.default_authority": name };
}
