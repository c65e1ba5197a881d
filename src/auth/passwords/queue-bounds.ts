import { networkOf } from "../../platform/client-network.ts";
import { fail } from "../../platform/errors.ts";

interface QueueBoundsOptions {
  /** Maximum number of waiting passwords. */
  readonly all: number;
  /** Maximum per IPv4 address or IPv6 /64 of clients, so that one client cannot fill the queue. */
  readonly ofAddress: number;
  /** Plural noun for the error text. */
  readonly what: string;
}

/**
 * Creates a function that counts a waiting password of a client address. The function throws `rate-limited` if a limit
 * is reached. Otherwise the function returns another function, which ends the wait.
 */
export function createQueueBounds({ all, ofAddress, what }: QueueBoundsOptions): (address: string) => () => void {
  const byAddress = new Map<string, number>();
  let waiting = 0;
  return (address) => {
    const owner = networkOf(address, { v4: 32, v6: 64 });
    const own = byAddress.get(owner) ?? 0;
    if (waiting >= all || own >= ofAddress) {
      const whose = own >= ofAddress ? " for your address" : "";
      const detail = `too many ${what}${whose} are waiting; wait 1 s`;
      throw fail("rate-limited", { retry_after_seconds: 1 }, { detail, retryAfter: 1 });
    }
    waiting += 1;
    byAddress.set(owner, own + 1);
    return () => {
      waiting -= 1;
      const left = (byAddress.get(owner) ?? 0) - 1;
      if (left > 0) byAddress.set(owner, left);
      else byAddress.delete(owner);
    };
  };
}
