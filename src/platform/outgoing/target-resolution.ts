import type { LookupAddress, LookupOptions } from "node:dns";
import { lookup, Resolver } from "node:dns/promises";
import { isIP, type LookupFunction } from "node:net";
import { networkInterfaces } from "node:os";
import { unlessLate } from "../deadline.ts";
import type { AddressRules, Target } from "./address-rules.ts";

/** How long a name may take to resolve. */
const lookupMs = 10_000;

/** How long the list of this machine's addresses is trusted: reading it takes 0.1 ms, which every request would pay. */
const ownAddressesMs = 5_000;

/** A target's addresses, all of them checked; connecting to anything else would let a name change between check and use. */
export type Resolution = { kind: "reachable"; addresses: readonly LookupAddress[] } | { kind: "refused" };

/** Resolves a name to all its addresses. */
export type Resolve = (host: string) => Promise<LookupAddress[]>;

/** Finds out where a target leads, and refuses it when any of its addresses is out of bounds. */
export async function resolveTarget(
  target: Target,
  rules: AddressRules,
  isAllowed: (target: Target) => boolean,
  resolve: Resolve,
): Promise<Resolution> {
  const allowed = isAllowed(target) || rules.allowsTarget(target);
  const family = isIP(target.host);
  const addresses = family === 0 ? await resolve(target.host) : [{ address: target.host, family }];
  if (!allowed && !addresses.every(({ address }) => rules.allowsAddress(address))) return { kind: "refused" };
  return { kind: "reachable", addresses };
}

/** Makes a lookup function that knows the checked addresses and nothing else. */
export function pinnedLookup(addresses: readonly LookupAddress[]): LookupFunction {
  return (hostname: string, options: LookupOptions, callback) => {
    const [first] = addresses;
    if (!first) callback(Object.assign(new Error(`no address of ${hostname}`), { code: "ENOTFOUND" }), "", 0);
    else if (options.all) callback(null, [...addresses]);
    else callback(null, first.address, first.family);
  };
}

/** Asks the system's resolver. */
export function resolveName(host: string): Promise<LookupAddress[]> {
  return unlessLate(lookup(host, { all: true }), lookupMs, () => Promise.reject(nameTimeout(host)));
}

/** Milliseconds that a name server may take, doubled at the second try. */
const dnsMs = 1_500;

/**
 * Asks name servers without the system's resolver, which holds one of this process's few threads for as long as a
 * stranger's name server is silent: four such names would keep it from its files. Knows no hosts file. The name servers
 * are those of the machine unless they are said.
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
    // The machine may have other name servers by now.
    if (!codesOfNoName.has(ipv4.reason?.code)) dns = open();
    throw ipv4.reason;
  };
}

/** What name servers say of a name that they know nothing of. */
const codesOfNoName = new Set(["ENOTFOUND", "ENODATA"]);

/** What a name fails with that does not resolve in time. */
export function nameTimeout(host: string): Error {
  return Object.assign(new Error(`resolving ${host} took too long`), { code: "ETIMEDOUT" });
}

/** Makes a function that lists the addresses of this machine's interfaces. */
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
