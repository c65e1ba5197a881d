import { type DescMessage, getOption, hasOption, type JsonValue, type MessageShape } from "@bufbuild/protobuf";
import { event_type } from "../gen/pilothouse/v1/options_pb.ts";
import { compileWriter } from "./rest-json/writer.ts";

/** What an event says: its type, and its `data` in the JSON of the REST interface. */
export interface EventPayload {
  readonly type: string;
  readonly data: Readonly<Record<string, JsonValue>>;
}

const types = new WeakMap<DescMessage, string>();

/** Makes a payload of a message that has an `event_type`. */
export function eventPayload<D extends DescMessage>(schema: D, message: MessageShape<D>): EventPayload {
  let type = types.get(schema);
  if (type === undefined) {
    if (!hasOption(schema, event_type)) throw new Error(`${schema.typeName} has no event_type`);
    // Reading an option decodes it: a page may tell of a thousand things a second.
    type = getOption(schema, event_type);
    types.set(schema, type);
  }
  return { type, data: compileWriter(schema)(message) };
}
