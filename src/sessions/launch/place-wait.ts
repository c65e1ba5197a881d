import { type CapacityWaitParts, leaveCapacityWaits } from "../../fleet/capacity-waits.ts";
import { nextMessage } from "../../platform/bus.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import { type ProfileReservation, profileInUse } from "../../profiles/profile-reservation.ts";
import { noCapacity } from "./launch-failure.ts";
import type { AtLimit } from "./slot-limit.ts";
import type { SlotQueue } from "./slot-queue.ts";
import type { SlotWait } from "./slot-wait-store.ts";

/** Milliseconds between checks for a free slot, in case a notification was lost. */
const pollEvery = 100;

export interface PlaceWaitParts extends CapacityWaitParts, Pick<PlatformParts, "bus" | "clock"> {
  readonly slotQueue: SlotQueue;
  /** Maximum milliseconds that a session or fetch waits for a slot of a worker. */
  readonly queueMs: number;
}

/** Result of an attempt to place a session or fetch. */
export type PlaceAttempt<Placed> =
  | { readonly kind: "placed"; readonly placed: Placed }
  | AtLimit
  | { readonly kind: "full" | "raced" }
  | Extract<ProfileReservation, { kind: "saving" }>;

/** A session or fetch that needs a slot of a worker. */
export interface PlaceOrder<Placed> extends SlotWait {
  /** Maximum milliseconds to wait at the account's limit. Default: 0. */
  readonly waitMs: number | undefined;
  readonly signal: AbortSignal;
  /** Whether the order fails at once if no worker has a free slot. */
  readonly failsIfFull?: boolean;
  tryPlace(isQueued: boolean): Promise<PlaceAttempt<Placed>>;
  /** Returns the error for a client that disconnected during the wait. */
  abandonError(): unknown;
}

/**
 * Waits in order at the account's limit, and then for a slot of a worker. `waitedMs` is the time spent at the account's
 * limit.
 */
export async function waitForPlace<Placed>(
  parts: PlaceWaitParts,
  order: PlaceOrder<Placed>,
): Promise<{ readonly placed: Placed; readonly waitedMs: number }> {
  const { slotQueue, clock, bus } = parts;
  const { accountId, id, signal } = order;
  const began = clock.monotonic();
  const until = began + (order.waitMs ?? 0);
  let isQueued = false;
  let isCounted = false;
  let waitedMs = 0;
  let deadline: number | undefined;
  try {
    for (;;) {
      const attempt = await order.tryPlace(isQueued);
      if (attempt.kind === "placed") return { placed: attempt.placed, waitedMs };
      if (attempt.kind === "at-limit") {
        isQueued = true;
        if (clock.monotonic() >= until) throw attempt.refusal;
        await slotQueue.wait({ accountId, id, limit: attempt.limit, until, signal });
        waitedMs = clock.monotonic() - began;
      } else {
        isCounted ||= attempt.kind === "full";
        deadline ??= clock.monotonic() + parts.queueMs;
        if (clock.monotonic() >= deadline || (attempt.kind === "full" && order.failsIfFull)) {
          throw attempt.kind === "saving"
            ? profileInUse(attempt.sessionId)
            : noCapacity("no worker has a free slot: try again in a moment");
        }
        if (attempt.kind !== "raced" && !signal.aborted) await nextMessage(bus, "capacity", pollEvery, signal);
      }
      // The session or fetch does not exist yet, and is not started for a client that has disconnected.
      if (signal.aborted) throw order.abandonError();
    }
  } finally {
    if (isQueued) await slotQueue.leave({ accountId, id });
    if (isCounted) await leaveCapacityWaits(parts, id);
  }
}
