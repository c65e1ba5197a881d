import { type ShownEvent, toEventMessage } from "../events/event-message.ts";
import { EventSchema } from "../gen/pilothouse/v1/common_pb.ts";
import { compileWriter } from "../platform/rest-json/writer.ts";

const write = compileWriter(EventSchema);

/** Creates the body of a delivery: the event as in `GET /v1/events`. */
export function writeEnvelope(event: ShownEvent): string {
  return JSON.stringify(write(toEventMessage(event)));
}
