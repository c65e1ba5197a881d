import { createRequire } from "node:module";
import { isIP } from "node:net";
import type Undici from "undici";
import type { Dispatcher } from "undici";
import { isPrivateName, isPublicAddress, normaliseHost } from "./address-rules.ts";
import type { OutgoingOptions } from "./outgoing-options.ts";

/** Loads the package, which takes 50 ms. Call it when the first request is sent. */
export function loadUndici(): typeof Undici {
  return createRequire(import.meta.url)("undici");
}

/**
 * Creates the dispatcher of requests to a server that the operator has configured. Private addresses are reached
 * directly, without the proxy. Returns undefined if nothing differs from the default of undici.
 */
export function operatorDispatcher(base: string, { proxy, ca }: OutgoingOptions): Dispatcher | undefined {
  const tls = ca === undefined ? undefined : { ca: [ca].flat() };
  const host = normaliseHost(new URL(base).hostname) ?? "";
  const isPublic = isIP(host) === 0 ? !isPrivateName(host) : isPublicAddress(host);
  if (proxy && isPublic)
    return new (loadUndici().ProxyAgent)({ uri: proxy.href, ...(tls && { requestTls: tls, proxyTls: tls }) });
  return tls && new (loadUndici().Agent)({ connect: tls });
}
