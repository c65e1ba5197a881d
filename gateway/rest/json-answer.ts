import type { DescMessage, Message } from "@bufbuild/protobuf";
import { compileWriter } from "../../src/platform/rest-json/writer.ts";

/**
 * Compiles the encoder of a method's responses. Encodes a frozen message, which is constant, once: otherwise each
 * unread response would hold a copy.
 */
export function compileEncoder(output: DescMessage): (message: Message) => Buffer {
  const write = compileWriter(output);
  // The newline ends the line in a terminal. Sent as bytes, because unread text takes three bytes per character.
  const encode = (message: Message): Buffer => Buffer.from(`${JSON.stringify(write(message))}\n`);
  const constants = new WeakMap<Message, Buffer>();
  return (message) => {
    if (!Object.isFrozen(message)) return encode(message);
    const bytes = constants.get(message) ?? encode(message);
    constants.set(message, bytes);
    return bytes;
  };
}
