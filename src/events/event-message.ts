import { create, type JsonObject } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Event, EventSchema } from "../gen/pilothouse/v1/common_pb.ts";
import type { StoredEvent } from "./store.ts";

/** Public fields of an event. */
export type ShownEvent = Pick<StoredEvent, "id" | "type" | "createdAt" | "data">;

/** Converts an event to its public message. */
export function toEventMessage({ id, type, createdAt, data }: ShownEvent): Event {
  return create(EventSchema, {
    id,
    type,
    createdAt: timestampFromDate(createdAt),
    data: data satisfies JsonObject,
  });
}
