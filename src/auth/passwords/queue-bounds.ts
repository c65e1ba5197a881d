import { networkOf } from "../../platform/client-network.ts";
import { fail } from "../../platform/errors.ts";

interface QueueBoundsOptions {
  /** Maximum number of waiting passwords. */
  readonly all: number;
  /** Maximum per client address, so that one address cannot fill the queue. */
  readonly ofAddress: number;
  /** Plural noun for the error text. */
  readonly what: string;
}

/**
 * Creates a counter of waiting passwords. The counter returns a function that ends the wait. It throws `rate-limited`
 * if a limit is reached.
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
