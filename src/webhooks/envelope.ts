import { type ShownEvent, toEventMessage } from "../events/event-message.ts";
import { EventSchema } from "../gen/pilothouse/v1/common_pb.ts";
import { compileWriter } from "../platform/rest-json/writer.ts";

const write = compileWriter(EventSchema);

/** Writes the body of a delivery: the event as `GET /v1/events` shows it. */
export function writeEnvelope(event: ShownEvent): string {
  return JSON.stringify(write(toEventMessage(event)));
}
