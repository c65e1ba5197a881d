import { isIP } from "node:net";
import { unlessLate } from "../../src/platform/deadline.ts";
import { type AddressRules, isPrivateName, type Target } from "../../src/platform/outgoing/address-rules.ts";
import { nameTimeout, type Resolve, resolveName } from "../../src/platform/outgoing/target-resolution.ts";

/** How long a page behind a proxy waits for a name that the proxy resolves anyway. */
const proxiedLookupMs = 3_000;

/** How many names one session resolves at once. */
const lookupsAtOnce = 3;

/** Threads for what is not slow: files, and compression. */
const otherThreads = 8;

/** What libuv grants at most. */
const maxThreads = 1_024;

/**
 * How many threads a worker asks Node for (UV_THREADPOOL_SIZE, four unless set). Names resolve on half of them at most,
 * and a name whose server is silent holds one for seconds: no session may keep the others from theirs.
 */
export function threadsFor(slots: number): number {
  return Math.min(2 * lookupsAtOnce * slots + otherThreads, maxThreads);
}

/** What decides where pages may go. */
export interface EgressGuard {
  readonly rules: AddressRules;
  readonly resolve: Resolve;
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
  // A name that is late is not let through: whoever owns it could be late on purpose, and then say what they like.
  const addresses = await unlessLate(
    resolve(target.host).catch(() => []),
    proxiedLookupMs,
    () => Promise.reject(nameTimeout(target.host)),
  );
  if (addresses.length === 0) return !isPrivateName(target.host);
  return addresses.every(({ address }) => rules.allowsAddress(address));
}

/** Lets a session resolve a few names at a time and the rest in turn. */
export function takeTurns(resolve: Resolve = resolveName): Resolve {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (host) => {
    if (running >= lookupsAtOnce) await new Promise<void>((proceed) => waiting.push(proceed));
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
