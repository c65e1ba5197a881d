import type { Config } from "../src/platform/config.ts";
import { hostName, isLoopback } from "../src/platform/loopback.ts";

/**
 * Returns a check of whether a Host header names this service. If the service listens only on loopback, the check
 * accepts loopback names and the host of PUBLIC_URL, as a defence against DNS rebinding. Otherwise it accepts any name.
 */
export function ownHosts({ host, publicUrl }: Config): (host: string) => boolean {
  if (!isLoopback(host)) return () => true;
  const publicHost = new URL(publicUrl).hostname;
  return (asked) => {
    const name = hostName(asked);
    return isLoopback(name) || name === publicHost;
  };
}
