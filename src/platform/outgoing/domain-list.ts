import type { FieldFault } from "../errors.ts";
import { normaliseHost } from "./address-rules.ts";

/** Parses `example.com` (one host) or `*.example.com` (all hosts below). Returns undefined if invalid. */
function readDomain(domain: string): { readonly host: string; readonly isWildcard: boolean } | undefined {
  const isWildcard = domain.startsWith("*.");
  const host = normaliseHost(isWildcard ? domain.slice(2) : domain);
  return host === undefined || host.includes("*") ? undefined : { host, isWildcard };
}

/** Returns the faults of a list of domains in a request field. */
export function domainFaults(domains: readonly string[], field = "allowed_domains"): FieldFault[] {
  const message = "must be a host, such as example.com, or *.example.com for all its subdomains";
  return domains.flatMap((domain, index) => (readDomain(domain) ? [] : [{ field: `${field}[${index}]`, message }]));
}

/** Intersects two lists of allowed domains, where an empty list allows all. Returns undefined if none overlap. */
export function intersectDomains(one: readonly string[], other: readonly string[]): readonly string[] | undefined {
  if (one.length === 0 || other.length === 0) return [...one, ...other];
  const within = (domains: readonly string[], outer: readonly string[]) => {
    const list = new DomainList(outer);
    return domains.filter((domain) => list.covers(domain));
  };
  const both = new Set([...within(one, other), ...within(other, one)]);
  return both.size === 0 ? undefined : [...both];
}

/** Set of hosts and parent domains. Ignores invalid entries. */
export class DomainList {
  readonly #hosts = new Set<string>();
  readonly #wildcards = new Set<string>();

  constructor(domains: readonly string[]) {
    for (const { host, isWildcard } of domains.flatMap((domain) => readDomain(domain) ?? []))
      (isWildcard ? this.#wildcards : this.#hosts).add(host);
  }

  /** Returns whether all hosts of a domain are in the set. */
  covers(domain: string): boolean {
    const { host, isWildcard } = readDomain(domain) ?? { host: "", isWildcard: false };
    // `*.a.example.com` is covered by itself and by `*.example.com`.
    return isWildcard ? this.#wildcards.has(host) || this.#isBelow(host) : this.has(host);
  }

  /** Returns whether a normalized host is in the set. */
  has(host: string): boolean {
    return this.#hosts.has(host) || this.#isBelow(host);
  }

  #isBelow(host: string): boolean {
    for (let dot = host.indexOf("."); dot >= 0; dot = host.indexOf(".", dot + 1)) {
      if (this.#wildcards.has(host.slice(dot + 1))) return true;
    }
    return false;
  }
}
