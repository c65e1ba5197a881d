import { isIP } from "node:net";
import { unlessLate } from "../../src/platform/deadline.ts";
import { type AddressRules, type HostPort, isPrivateName } from "../../src/platform/outgoing/address-rules.ts";
import { nameTimeout, type Resolve, resolveName } from "../../src/platform/outgoing/target-resolution.ts";

/** Milliseconds to wait for a local lookup if a proxy resolves the name anyway. */
const proxiedLookupMs = 3_000;

/** Maximum concurrent lookups per session. */
const maxLookups = 3;

/** Threads for file access and compression. */
const otherThreads = 8;

/** libuv's maximum number of threads. */
const maxThreads = 1_024;

/**
 * Returns the UV_THREADPOOL_SIZE for a worker (Node's default: 4). libuv resolves names on half of the threads, and a
 * silent server blocks a thread for seconds. Up to 169 slots, this size keeps one session from blocking the lookups of
 * others.
 */
export function threadsFor(slots: number): number {
  return Math.min(2 * maxLookups * slots + otherThreads, maxThreads);
}

/** The rules and the resolver that decide which targets pages may reach. */
export interface EgressGuard {
  readonly rules: AddressRules;
  readonly resolve: Resolve;
}

/**
 * Returns whether a page may request a target through a proxy. The proxy resolves names itself, so the target's
 * addresses cannot be pinned. Refused are private address literals and names outside public zones, unless the operator
 * allows them. If the proxy is in a private network, a name that resolves locally is judged by its addresses instead.
 * Other proxies cannot reach the operator's networks, so no local lookup is made. A lookup would reveal the user's real
 * location to name servers.
 */
export async function admitThroughProxy(
  target: HostPort,
  { rules, resolve }: EgressGuard,
  isInPrivateNetwork: () => Promise<boolean>,
): Promise<boolean> {
  if (rules.allowsTarget(target)) return true;
  if (isIP(target.host) !== 0) return rules.allowsAddress(target.host);
  if (!(await isInPrivateNetwork())) return !isPrivateName(target.host);
  // A late lookup rejects: the name's owner could delay the lookup on purpose to bypass the check.
  const addresses = await unlessLate(
    resolve(target.host).catch(() => []),
    proxiedLookupMs,
    () => Promise.reject(nameTimeout(target.host)),
  );
  if (addresses.length === 0) return !isPrivateName(target.host);
  return addresses.every(({ address }) => rules.allowsAddress(address));
}

/** Limits a session's concurrent lookups. Further lookups wait in FIFO order. */
export function limitLookups(resolve: Resolve = resolveName): Resolve {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (host) => {
    if (running >= maxLookups) await new Promise<void>((proceed) => waiting.push(proceed));
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
