import { type DescMessage, type Message, toBinary } from "@bufbuild/protobuf";
import type { ServedMethod } from "../../src/kernel/registry.ts";
import { type FieldFault, failFaults } from "../../src/platform/errors.ts";
import { messageBounds, parseJson } from "../../src/platform/rest-json/parse.ts";
import { compileReader } from "../../src/platform/rest-json/reader.ts";
import { compileWriter } from "../../src/platform/rest-json/writer.ts";
import { readMessage } from "../unread-messages.ts";

/** One frame of a WebSocket. */
export interface Frame {
  readonly data: Buffer;
  readonly isBinary: boolean;
}

/** What a frame of a client holds. */
export type Received =
  | { readonly kind: "message"; readonly message: Message }
  /** A message with faults; `id` is the client's name for it, empty where it has none. */
  | { readonly kind: "fault"; readonly failure: unknown; readonly id: string }
  /** `{"end": true}` is the half-close that WebSocket lacks: what is queued is finished, then the server closes. */
  | { readonly kind: "end" }
  | { readonly kind: "nonsense" };

/** Reads and writes the frames of one method. */
export interface FrameCodec {
  read(frame: Frame): Received;
  write(message: Message): string | Uint8Array;
}

/**
 * Compiles the frames of a method: text frames hold the REST JSON. Where the method names fields in `websocket_binary`,
 * messages that have one of them set travel in binary frames, as protobuf. `variables` are those of the path.
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
  const isBinary = carriesOneOf(output, websocketBinary);
  return {
    read({ data, isBinary }) {
      if (isBinary) {
        const message = websocketBinary.length > 0 ? attempt(() => readMessage(input, data, messageBounds)) : undefined;
        return message ? { kind: "message", message: Object.assign(message, bound) } : { kind: "nonsense" };
      }
      const faults: FieldFault[] = [];
      const json = attempt(() => parseJson(data, faults, messageBounds));
      if (json === undefined) return { kind: "nonsense" };
      if (memberOf(json, "end") === true) return { kind: "end" };
      const message = readJson(json, faults);
      if (faults.length === 0) return { kind: "message", message: Object.assign(message, bound) };
      const id = memberOf(json, "id");
      return { kind: "fault", failure: failFaults("validation-failed", faults), id: typeof id === "string" ? id : "" };
    },
    write: (message) => (isBinary(message) ? toBinary(output, message) : JSON.stringify(writeJson(message))),
  };
}

/** Returns whether a frame is short and may be the half-close, which draws no token and so is read before one is drawn. */
export function mayBeEnd({ data, isBinary }: Frame): boolean {
  return !isBinary && data.length <= 64 && data.includes('"end"');
}

/** Compiles whether a message has one of some fields set. */
function carriesOneOf(desc: DescMessage, names: readonly string[]): (message: Message) => boolean {
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

/** What a reader gives; undefined when it throws. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
