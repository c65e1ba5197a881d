import { create } from "@bufbuild/protobuf";
import type { Event } from "../gen/pilothouse/v1/common_pb.ts";
import {
  type EventService,
  type ListEventsRequest,
  ListEventsResponseSchema,
  type WatchEventsRequest,
} from "../gen/pilothouse/v1/event_pb.ts";
import type { Call } from "../kernel/call.ts";
import type { ServiceImplementation } from "../kernel/registry.ts";
import { failFields } from "../platform/errors.ts";
import { cutPage, readCursor } from "../platform/list-page.ts";
import type { Database } from "../platform/postgres/database.ts";
import type { EventLog } from "./event-log.ts";
import { toEventMessage } from "./event-message.ts";
import { listEvents } from "./store.ts";
import { subscribableTypes, unknownTypeMessage } from "./subscribable-events.ts";

export interface EventServiceParts {
  readonly db: Database;
  readonly events: EventLog;
}

const defaultPage = 20;

/** Cursor: the number of an event. */
const eventNumber = /^[0-9]{1,18}$/;

export function createEventService({ db, events }: EventServiceParts): ServiceImplementation<typeof EventService> {
  async function list({ principal }: Call, { limit = defaultPage, cursor, type, subjectId }: ListEventsRequest) {
    if (type !== undefined && !subscribableTypes.has(type))
      throw failFields("validation-failed", { type: unknownTypeMessage });
    const found = await listEvents(db, {
      accountId: principal.accountId,
      subject: subjectId,
      types: type === undefined ? [...subscribableTypes] : [type],
      before: readCursor(cursor, eventNumber),
      limit: limit + 1,
    });
    const numbered = found.map((event) => ({ id: `${event.number}`, event }));
    const { rows, position } = cutPage(numbered, limit);
    return create(ListEventsResponseSchema, { data: rows.map(({ event }) => toEventMessage(event)), ...position });
  }

  async function* watch(call: Call, { afterEventId: after }: WatchEventsRequest): AsyncGenerator<Event> {
    const { principal, signal } = call;
    const onStart = (eventId: string) => call.startAfter(eventId);
    yield* await events.watch({ accountId: principal.accountId, types: subscribableTypes, after, signal, onStart });
  }

  return { list, watch };
}
