import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { lowestId } from "../platform/ids.ts";
import type { EntryFilter } from "./store.ts";

/** What lists and exports are narrowed down by. */
interface FilterRequest {
  readonly action?: string | undefined;
  readonly actorId?: string | undefined;
  readonly subjectId?: string | undefined;
  readonly fromAt?: Timestamp | undefined;
  readonly untilAt?: Timestamp | undefined;
}

/** The first identifier of a time: entries are in the order of theirs. */
function firstAt({ seconds, nanos }: Timestamp): string {
  return lowestId("aud", Math.max(0, Number(seconds) * 1_000 + Math.ceil(nanos / 1_000_000)));
}

/** Reads what of an account's log is asked for. */
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
