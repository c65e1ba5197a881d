import { normaliseHost } from "./address-rules.ts";

/** Reads `example.com`, which is that host, or `*.example.com`, which is all below it; undefined for what is neither. */
export function readDomain(domain: string): { readonly host: string; readonly isAbove: boolean } | undefined {
  const isAbove = domain.startsWith("*.");
  const host = normaliseHost(isAbove ? domain.slice(2) : domain);
  return host === undefined || host.includes("*") ? undefined : { host, isAbove };
}

/** Hosts by name, and all hosts below a domain. What is neither is no host's. */
export class DomainList {
  readonly #hosts = new Set<string>();
  readonly #above = new Set<string>();

  constructor(domains: readonly string[]) {
    for (const { host, isAbove } of domains.flatMap((domain) => readDomain(domain) ?? []))
      (isAbove ? this.#above : this.#hosts).add(host);
  }

  /** Whether a host, spelled as the URL standard does, is among them. */
  has(host: string): boolean {
    if (this.#hosts.has(host)) return true;
    for (let dot = host.indexOf("."); dot >= 0; dot = host.indexOf(".", dot + 1)) {
      if (this.#above.has(host.slice(dot + 1))) return true;
    }
    return false;
  }
}
