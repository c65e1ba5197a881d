import type { LookupAddress, LookupOptions } from "node:dns";
import { lookup, Resolver } from "node:dns/promises";
import { isIP, type LookupFunction } from "node:net";
import { networkInterfaces } from "node:os";
import { unlessLate } from "../deadline.ts";
import type { AddressRules, HostPort } from "./address-rules.ts";

/** Timeout of a lookup in milliseconds. */
const lookupMs = 10_000;

/** Milliseconds for which the machine's addresses are cached, because reading them takes 0.1 ms. */
const ownAddressesMs = 5_000;

/** Checked addresses of a target. Connecting to these alone prevents DNS rebinding. */
export type Resolution = { kind: "reachable"; addresses: readonly LookupAddress[] } | { kind: "refused" };

/** Resolves a name to all its addresses. */
export type Resolve = (host: string) => Promise<LookupAddress[]>;

/** Resolves a target. Unless the target itself is allowed, refuses a target with any address that is not allowed. */
export async function resolveTarget(
  target: HostPort,
  rules: AddressRules,
  isAllowed: (target: HostPort) => boolean,
  resolve: Resolve,
): Promise<Resolution> {
  const allowed = isAllowed(target) || rules.allowsTarget(target);
  const family = isIP(target.host);
  const addresses = family === 0 ? await resolve(target.host) : [{ address: target.host, family }];
  if (!allowed && !addresses.every(({ address }) => rules.allowsAddress(address))) return { kind: "refused" };
  return { kind: "reachable", addresses };
}

/** Creates a lookup function that returns only the checked addresses. */
export function pinnedLookup(addresses: readonly LookupAddress[]): LookupFunction {
  return (hostname: string, options: LookupOptions, callback) => {
    const [first] = addresses;
    if (!first) callback(Object.assign(new Error(`no address of ${hostname}`), { code: "ENOTFOUND" }), "", 0);
    else if (options.all) callback(null, [...addresses]);
    else callback(null, first.address, first.family);
  };
}

/** Resolves a name with the system's resolver. */
export function resolveName(host: string): Promise<LookupAddress[]> {
  return unlessLate(lookup(host, { all: true }), lookupMs, () => Promise.reject(nameTimeout(host)));
}

/** Milliseconds to wait for a name server, doubled at the second attempt. */
const dnsMs = 1_500;

/**
 * Creates a resolver that queries name servers directly, without the hosts file. The system's resolver blocks a thread
 * while a name server is silent: four such lookups would block file access. Default: name servers of the machine.
 */
export function createDnsResolve(servers?: readonly string[]): Resolve {
  const open = (): Resolver => {
    const resolver = new Resolver({ timeout: dnsMs, tries: 2 });
    if (servers) resolver.setServers(servers);
    return resolver;
  };
  let dns = open();
  return async (host) => {
    const [ipv4, ipv6] = await Promise.allSettled([dns.resolve4(host), dns.resolve6(host)]);
    const found = [
      ...(ipv4.status === "fulfilled" ? ipv4.value.map((address) => ({ address, family: 4 })) : []),
      ...(ipv6.status === "fulfilled" ? ipv6.value.map((address) => ({ address, family: 6 })) : []),
    ];
    if (found.length > 0 || ipv4.status === "fulfilled") return found;
    // The machine's name servers may have changed.
    if (!codesOfNoName.has(ipv4.reason?.code)) dns = open();
    throw ipv4.reason;
  };
}

/**
 * DNS error codes that are valid answers: no such name, or no address record. After other errors, the name servers are
 * read again.
 */
const codesOfNoName = new Set(["ENOTFOUND", "ENODATA"]);

/** Creates the error of a lookup that timed out. */
export function nameTimeout(host: string): Error {
  return Object.assign(new Error(`resolving ${host} took too long`), { code: "ETIMEDOUT" });
}

/** Creates a function that lists the addresses of this machine. */
export function ownAddresses(now: () => number = Date.now): () => Iterable<string> {
  let known = new Set<string>();
  let readAt = Number.NEGATIVE_INFINITY;
  return () => {
    if (now() - readAt > ownAddressesMs) {
      readAt = now();
      const entries = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
      known = new Set(entries.map((entry) => entry.address));
    }
    return known;
  };
}
