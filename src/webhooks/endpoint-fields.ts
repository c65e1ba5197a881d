import { subscribableTypes, unknownTypeMessage } from "../events/subscribable-events.ts";
import type { UpdateWebhookRequest } from "../gen/pilothouse/v1/webhook_pb.ts";
import { failFields } from "../platform/errors.ts";

/** Client-defined fields of an endpoint. */
export interface EndpointFields {
  readonly url: string;
  readonly events: string[];
  readonly description: string | null;
  readonly active: boolean;
}

const everything = "*";

/** Returns the subscribed event types; an empty list becomes `*`, all types. Throws `validation-failed`. */
export function readEventTypes(events: readonly string[]): string[] {
  if (events.length === 0 || (events.length === 1 && events[0] === everything)) return [everything];
  const unknown = events.findIndex((type) => !subscribableTypes.has(type));
  if (unknown === -1) return [...events];
  const words = events[unknown] === everything ? "must be the only entry" : unknownTypeMessage;
  throw failFields("validation-failed", { [`events[${unknown}]`]: words });
}

/**
 * Returns the fields that the mask of an update names. Without a value, `description` is cleared and `events` becomes
 * all types. Throws `validation-failed` if `url` or `active` has no value.
 */
export function readChanges({ updateMask, ...request }: UpdateWebhookRequest): Partial<EndpointFields> {
  const paths = new Set(updateMask?.paths);
  const { url, events, description, active } = request;
  for (const name of ["url", "active"] as const)
    if (paths.has(name) && request[name] === undefined)
      throw failFields("validation-failed", { [name]: "cannot be cleared" });
  return {
    ...(paths.has("url") && url !== undefined && { url }),
    ...(paths.has("events") && { events: readEventTypes(events) }),
    ...(paths.has("description") && { description: description ?? null }),
    ...(paths.has("active") && active !== undefined && { active }),
  };
}
