import { type DescMessage, type Message, toBinary } from "@bufbuild/protobuf";
import type { ServedMethod } from "../../src/kernel/registry.ts";
import { type FieldFault, failFaults } from "../../src/platform/errors.ts";
import { messageBounds, parseJson } from "../../src/platform/rest-json/parse.ts";
import { compileReader } from "../../src/platform/rest-json/reader.ts";
import { compileWriter } from "../../src/platform/rest-json/writer.ts";
import { readMessage } from "../unread-messages.ts";

export interface WebSocketFrame {
  readonly data: Buffer;
  readonly isBinary: boolean;
}

/** Contents of a client's frame. */
export type FrameContent =
  | { readonly kind: "message"; readonly message: Message }
  /** A faulty message. `id` is the client's message id, or "". */
  | { readonly kind: "fault"; readonly failure: unknown; readonly id: string }
  /** `{"end": true}` is the half-close that WebSocket lacks: queued messages are finished, then the server closes. */
  | { readonly kind: "end" }
  | { readonly kind: "unreadable" };

/** Reads and writes the frames of a method. */
export interface FrameCodec {
  read(frame: WebSocketFrame): FrameContent;
  write(message: Message): string | Uint8Array;
}

/**
 * Compiles the frame codec of a method. Text frames contain the REST JSON. Messages with a field of the option
 * `websocket_binary` are sent as binary frames in protobuf, and clients of such methods may send binary frames too.
 * `variables` contains the values from the path.
 */
export function compileFrames(
  { method: { input, output }, rules: { websocketBinary } }: ServedMethod,
  variables: Readonly<Record<string, string>>,
): FrameCodec {
  const readJson = compileReader(input, new Set(Object.keys(variables)));
  const writeJson = compileWriter(output);
  const bound = Object.fromEntries(
    input.fields.flatMap(({ name, localName }) => (name in variables ? [[localName, variables[name]]] : [])),
  );
  const isBinary = compileFieldCheck(output, websocketBinary);
  return {
    read({ data, isBinary }) {
      if (isBinary) {
        const message =
          websocketBinary.length > 0 ? orUndefined(() => readMessage(input, data, messageBounds)) : undefined;
        return message ? { kind: "message", message: Object.assign(message, bound) } : { kind: "unreadable" };
      }
      const faults: FieldFault[] = [];
      const json = orUndefined(() => parseJson(data, faults, messageBounds));
      if (json === undefined) return { kind: "unreadable" };
      if (memberOf(json, "end") === true) return { kind: "end" };
      const message = readJson(json, faults);
      if (faults.length === 0) return { kind: "message", message: Object.assign(message, bound) };
      const id = memberOf(json, "id");
      return { kind: "fault", failure: failFaults("validation-failed", faults), id: typeof id === "string" ? id : "" };
    },
    write: (message) => (isBinary(message) ? encodeOnce(output, message) : JSON.stringify(writeJson(message))),
  };
}

/** Encodings of binary messages, which several clients may receive. */
const encodings = new WeakMap<Message, Uint8Array>();

function encodeOnce(output: DescMessage, message: Message): Uint8Array {
  const bytes = encodings.get(message) ?? toBinary(output, message);
  encodings.set(message, bytes);
  return bytes;
}

/**
 * Returns whether a frame may be the half-close. The half-close draws no token, so such a frame is read before tokens
 * are drawn.
 */
export function mayBeEnd({ data, isBinary }: WebSocketFrame): boolean {
  return !isBinary && data.length <= 64 && data.includes('"end"');
}

/** Compiles a check of whether a message has one of some fields. */
function compileFieldCheck(desc: DescMessage, names: readonly string[]): (message: Message) => boolean {
  const members = names.map((name) => {
    const field = desc.fields.find((candidate) => candidate.name === name);
    if (!field) throw new Error(`${desc.typeName} has no field ${name}, which its method sends in binary frames`);
    return field;
  });
  return (message) =>
    members.some(({ oneof, localName }) => {
      const value: unknown = Reflect.get(message, oneof?.localName ?? localName);
      return oneof
        ? memberOf(value, "case") === localName
        : value instanceof Uint8Array
          ? value.length > 0
          : value !== undefined;
    });
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}

/** Returns the result of a function; undefined if the function throws. */
function orUndefined<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
