import type { AccountChange, AccountResource } from "../gen/pilothouse/v1/account_pb.ts";
import type { Bus } from "../platform/bus.ts";
import type { NamesOf } from "../platform/rest-json/field-names.ts";

/** A change in an account, for the clients that follow it. */
export interface ResourceChange {
  readonly accountId: string;
  readonly resource: NamesOf<typeof AccountResource>;
  readonly id: string;
  readonly change: NamesOf<typeof AccountChange>;
  /** Position of a waiting session create in the queue of its account, from 1. */
  readonly place?: number | undefined;
}

/** Notifies the followers of an account on all gateways. Call it after the commit. */
export function publishChange(bus: Bus, { accountId, resource, id, change, place }: ResourceChange): void {
  bus.publish("account-changed", [accountId, resource, id, change, ...(place === undefined ? [] : [place])].join(" "));
}

/** Parses a message of `publishChange`. Names that only a later release knows are returned unchanged. */
export function readChange(message: string): ResourceChange {
  const [accountId = "", resource = "", id = "", change = "", place] = message.split(" ");
  // Unchecked cast: callers convert both names by `storedNames`, which maps unknown names to the unspecified value.
  return { accountId, resource, id, change, ...(place !== undefined && { place: Number(place) }) } as ResourceChange;
}
