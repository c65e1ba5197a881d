import { isIP } from "node:net";
import { Agent, type Dispatcher, ProxyAgent } from "undici";
import { isPrivateName, isPublicAddress, normaliseHost } from "./address-rules.ts";
import type { OutgoingWay } from "./outgoing-way.ts";

/**
 * Creates the dispatcher of requests to a server that the operator has configured. Private addresses are reached
 * directly, without the proxy. Returns undefined if nothing differs from the default of undici.
 */
export function operatorDispatcher(base: string, { proxy, ca }: OutgoingWay): Dispatcher | undefined {
  const tls = ca === undefined ? undefined : { ca: [ca].flat() };
  const host = normaliseHost(new URL(base).hostname) ?? "";
  const isPublic = isIP(host) === 0 ? !isPrivateName(host) : isPublicAddress(host);
  if (proxy && isPublic) return new ProxyAgent({ uri: proxy.href, ...(tls && { requestTls: tls, proxyTls: tls }) });
  return tls && new Agent({ connect: tls });
}
