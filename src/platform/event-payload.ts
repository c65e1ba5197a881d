import { type DescMessage, getOption, hasOption, type JsonValue, type MessageShape } from "@bufbuild/protobuf";
import { event_type } from "../gen/pilothouse/v1/options_pb.ts";
import { compileWriter } from "./rest-json/writer.ts";

/** Type of an event, and its `data` in REST JSON. */
export interface EventPayload {
  readonly type: string;
  readonly data: Readonly<Record<string, JsonValue>>;
}

const types = new WeakMap<DescMessage, string>();

/** Creates the payload of an event. Throws if the message lacks an `event_type`. */
export function eventPayload<D extends DescMessage>(schema: D, message: MessageShape<D>): EventPayload {
  let type = types.get(schema);
  if (type === undefined) {
    if (!hasOption(schema, event_type)) throw new Error(`${schema.typeName} has no event_type`);
    // Cached, because decoding an option is slow and a page may cause a thousand events per second.
    type = getOption(schema, event_type);
    types.set(schema, type);
  }
  return { type, data: compileWriter(schema)(message) };
}
