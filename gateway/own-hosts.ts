import type { Config } from "../src/platform/config.ts";
import { hostName, isLoopback } from "../src/platform/loopback.ts";

/** Returns a check of whether a host is that of PUBLIC_URL or a loopback name. */
export function namesOfService({ publicUrl }: Pick<Config, "publicUrl">): (name: string) => boolean {
  const publicHost = new URL(publicUrl).hostname;
  return (name) => isLoopback(name) || name === publicHost;
}

/**
 * Returns a check of whether a Host header names this service. If the service listens only on loopback, the check
 * accepts loopback names and the host of PUBLIC_URL, as a defence against DNS rebinding. Otherwise it accepts any name.
 */
export function ownHosts(config: Pick<Config, "host" | "publicUrl">): (host: string) => boolean {
  if (!isLoopback(config.host)) return () => true;
  const isName = namesOfService(config);
  return (host) => isName(hostName(host));
}
