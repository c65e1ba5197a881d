import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { lowestId } from "../platform/ids.ts";
import type { EntryFilter } from "./store.ts";

/** Filter fields common to lists and exports. */
interface FilterRequest {
  readonly action?: string | undefined;
  readonly actorId?: string | undefined;
  readonly subjectId?: string | undefined;
  readonly fromAt?: Timestamp | undefined;
  readonly untilAt?: Timestamp | undefined;
}

/** Returns the lowest identifier of a time. Identifiers sort by time. */
function firstAt({ seconds, nanos }: Timestamp): string {
  return lowestId("aud", Math.max(0, Number(seconds) * 1_000 + Math.ceil(nanos / 1_000_000)));
}

/** Converts a request to a filter of an account's entries. */
export function readFilter(accountId: string, request: FilterRequest): EntryFilter {
  const { action, actorId, subjectId, fromAt, untilAt } = request;
  return {
    accountId,
    ...(action !== undefined && { action }),
    ...(actorId !== undefined && { actorId }),
    ...(subjectId !== undefined && { subject: subjectId }),
    ...(fromAt && { from: firstAt(fromAt) }),
    ...(untilAt && { before: firstAt(untilAt) }),
  };
}
