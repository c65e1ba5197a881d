import { publishChange } from "../kernel/account-change.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import type { NewDelivery } from "./delivery-store.ts";

/**
 * Milliseconds for which the changes of an endpoint are combined into one notice. An endpoint can have hundreds of
 * deliveries a second.
 */
const joinFor = 500;

/** Publishes account notices about changes in the delivery logs of endpoints. */
export interface DeliveryNotices {
  /** Publishes a notice about the endpoint of a delivery within 500 ms after the commit. */
  publish(tx: Tx, delivery: Pick<NewDelivery, "accountId" | "endpointId">): void;
}

/** Creates the publisher of a gateway. */
export function createDeliveryNotices({ bus, clock }: Pick<PlatformParts, "bus" | "clock">): DeliveryNotices {
  /** Account of each endpoint that has unpublished changes, by endpoint identifier. */
  const changed = new Map<string, string>();

  async function publishSoon(): Promise<void> {
    await clock.sleep(joinFor);
    const all = [...changed];
    changed.clear();
    for (const [id, accountId] of all) publishChange(bus, { accountId, resource: "delivery", id, change: "changed" });
  }

  return {
    publish: (tx, { accountId, endpointId }) =>
      tx.afterCommit(() => {
        if (changed.size === 0) void publishSoon();
        changed.set(endpointId, accountId);
      }),
  };
}
