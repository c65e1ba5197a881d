import type { FieldFault } from "../errors.ts";
import { normaliseHost } from "./address-rules.ts";

/** Reads `example.com`, which is that host, or `*.example.com`, which is all below it; undefined for what is neither. */
function readDomain(domain: string): { readonly host: string; readonly isAbove: boolean } | undefined {
  const isAbove = domain.startsWith("*.");
  const host = normaliseHost(isAbove ? domain.slice(2) : domain);
  return host === undefined || host.includes("*") ? undefined : { host, isAbove };
}

/** What is wrong with the domains in a field of a request, each of which is to be one. */
export function domainFaults(domains: readonly string[], field = "allowed_domains"): FieldFault[] {
  const message = "must be a host, such as example.com, or *.example.com for all below it";
  return domains.flatMap((domain, index) => (readDomain(domain) ? [] : [{ field: `${field}[${index}]`, message }]));
}

/** The domains that two lists allow, of which an empty one allows all; undefined where they have nothing in common. */
export function bothAllow(one: readonly string[], other: readonly string[]): readonly string[] | undefined {
  if (one.length === 0 || other.length === 0) return [...one, ...other];
  const within = (domains: readonly string[], outer: readonly string[]) => {
    const list = new DomainList(outer);
    return domains.filter((domain) => list.covers(domain));
  };
  const both = new Set([...within(one, other), ...within(other, one)]);
  return both.size === 0 ? undefined : [...both];
}

/** Hosts by name, and all hosts below a domain. What is neither is no host's. */
export class DomainList {
  readonly #hosts = new Set<string>();
  readonly #above = new Set<string>();

  constructor(domains: readonly string[]) {
    for (const { host, isAbove } of domains.flatMap((domain) => readDomain(domain) ?? []))
      (isAbove ? this.#above : this.#hosts).add(host);
  }

  /** Whether all that a domain allows is among them. */
  covers(domain: string): boolean {
    const { host, isAbove } = readDomain(domain) ?? { host: "", isAbove: false };
    // `*.a.example.com` is all within itself, and within `*.example.com`.
    return isAbove ? this.#above.has(host) || this.#isBelow(host) : this.has(host);
  }

  /** Whether a host, spelled as the URL standard does, is among them. */
  has(host: string): boolean {
    return this.#hosts.has(host) || this.#isBelow(host);
  }

  #isBelow(host: string): boolean {
    for (let dot = host.indexOf("."); dot >= 0; dot = host.indexOf(".", dot + 1)) {
      if (this.#above.has(host.slice(dot + 1))) return true;
    }
    return false;
  }
}
