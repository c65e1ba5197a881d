import type { LookupAddress, LookupOptions } from "node:dns";
import { lookup } from "node:dns/promises";
import { isIP, type LookupFunction } from "node:net";
import { networkInterfaces } from "node:os";
import { unlessLate, within } from "../../src/platform/deadline.ts";
import type { AddressRules, Target } from "./address-rules.ts";

/** How long a name may take to resolve. */
const LOOKUP_MS = 10_000;

/** How long a page behind a proxy waits for a name that the proxy resolves anyway. */
const PROXIED_LOOKUP_MS = 3_000;

/** How many names one session resolves at once. */
const LOOKUPS_AT_ONCE = 3;

/** How long the list of this machine's addresses is trusted: reading it takes 0.1 ms, which every request would pay. */
const OWN_ADDRESSES_MS = 5_000;

/** A target's addresses, all of them checked; connecting to anything else would let a name change between check and use. */
export type Resolution = { kind: "reachable"; addresses: readonly LookupAddress[] } | { kind: "refused" };

/** Resolves a name to all its addresses. */
export type Resolve = (host: string) => Promise<LookupAddress[]>;

/** What decides where pages may go. */
export interface EgressGuard {
  readonly rules: AddressRules;
  readonly resolve: Resolve;
}

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

/**
 * Decides whether a page may ask a proxy for a target. The proxy resolves names itself, so what it will connect to cannot
 * be pinned; what can be known is refused: private literals, names that no public zone holds, and, where the proxy stands
 * in a network of ours, names that lead from here to a private address. A proxy elsewhere does not see our networks, and
 * looking names up here would tell our name server, and the site's, where its user really is.
 */
export async function admitThroughProxy(
  target: Target,
  { rules, resolve }: EgressGuard,
  isOurs: () => Promise<boolean>,
): Promise<boolean> {
  if (rules.allowsTarget(target)) return true;
  if (isIP(target.host) !== 0) return rules.allowsAddress(target.host);
  if (!(await isOurs())) return !isPrivateName(target.host);
  const addresses = await within(resolve(target.host), PROXIED_LOOKUP_MS, []);
  if (addresses.length === 0) return !isPrivateName(target.host);
  return addresses.every(({ address }) => rules.allowsAddress(address));
}

/** Names that are never on the public internet: without a dot, or reserved (RFC 6761, 6762, 8375, ICANN's `internal`). */
function isPrivateName(name: string): boolean {
  return !name.includes(".") || /\.(?:localhost|local|internal|home\.arpa)$/.test(name);
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

/** Asks the system's resolver, outside the slot. */
function resolveName(host: string): Promise<LookupAddress[]> {
  return unlessLate(lookup(host, { all: true }), LOOKUP_MS, () => {
    throw Object.assign(new Error(`resolving ${host} took too long`), { code: "ETIMEDOUT" });
  });
}

/**
 * Lets a session resolve a few names at a time and the rest in turn. The system's resolver runs on Node's threads, four
 * unless UV_THREADPOOL_SIZE says otherwise, and a page could fill them all with names that take long.
 */
export function takeTurns(resolve: Resolve = resolveName): Resolve {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (host) => {
    if (running >= LOOKUPS_AT_ONCE) await new Promise<void>((proceed) => waiting.push(proceed));
    else running += 1;
    try {
      return await resolve(host);
    } finally {
      const next = waiting.shift();
      if (next) next();
      else running -= 1;
    }
  };
}

/** Makes a function that lists the addresses of this machine's interfaces. */
export function ownAddresses(now: () => number = Date.now): () => Iterable<string> {
  let known = new Set<string>();
  let readAt = Number.NEGATIVE_INFINITY;
  return () => {
    if (now() - readAt > OWN_ADDRESSES_MS) {
      readAt = now();
      const entries = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
      known = new Set(entries.map((entry) => entry.address));
    }
    return known;
  };
}
