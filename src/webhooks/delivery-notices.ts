import { publishChange } from "../kernel/account-change.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import type { NewDelivery } from "./delivery-store.ts";

/** Milliseconds whose changes of a log are one notice, because an endpoint can have hundreds of deliveries a second. */
const joinFor = 500;

/** Notifies the followers of an account of changes in the delivery logs of its endpoints. */
export interface DeliveryNotices {
  /** Notifies soon after the commit. */
  note(tx: Tx, delivery: Pick<NewDelivery, "accountId" | "endpointId">): void;
}

/** Creates the notices of a gateway. */
export function createDeliveryNotices({ bus, clock }: Pick<PlatformParts, "bus" | "clock">): DeliveryNotices {
  /** Accounts of endpoints with changes, by endpoint. */
  const changed = new Map<string, string>();

  async function publishSoon(): Promise<void> {
    await clock.sleep(joinFor);
    const all = [...changed];
    changed.clear();
    for (const [id, accountId] of all) publishChange(bus, { accountId, resource: "delivery", id, change: "changed" });
  }

  return {
    note: (tx, { accountId, endpointId }) =>
      tx.afterCommit(() => {
        if (changed.size === 0) void publishSoon();
        changed.set(endpointId, accountId);
      }),
  };
}
