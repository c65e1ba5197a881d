import type { Config } from "../src/platform/config.ts";
import { hostName, isLoopback } from "../src/platform/loopback.ts";

/**
 * Says whether a Host header names this service. While the service listens on loopback alone, only loopback names and
 * PUBLIC_URL's are its own: a name of a web page that resolves to loopback (DNS rebinding) is not. Else any name is.
 */
export function ownHosts({ host, publicUrl }: Config): (host: string) => boolean {
  if (!isLoopback(host)) return () => true;
  const publicHost = new URL(publicUrl).hostname;
  return (asked) => {
    const name = hostName(asked);
    return isLoopback(name) || name === publicHost;
  };
}
