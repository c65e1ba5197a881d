import { type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { fail } from "../../src/platform/errors.ts";
import { compileWriter } from "../../src/platform/rest-json/writer.ts";

/** A JSON body, written while its bytes fields arrive. `contentLength` is known only if all bytes fields are empty. */
export interface StreamedFields {
  readonly contentLength?: number;
  readonly chunks: AsyncIterable<Buffer>;
}

/** A message of the stream: the response without its bytes fields, then parts of these fields in order. */
type Part = Message & { readonly header?: Message };

/** Returns whether the header of a stream is the response itself, whose bytes fields follow under their names. */
export function hasStreamedFields(answer: DescMessage, part: DescMessage): boolean {
  return part.fields.some(({ name, message }) => name === "header" && message?.typeName === answer.typeName);
}

/** Compiles the writer of a message whose bytes fields are streamed. Holds one chunk at a time. */
export function compileStreamedFields(answer: DescMessage): (parts: AsyncIterable<Message>) => Promise<StreamedFields> {
  const write = compileWriter(answer);
  const dataFields = answer.fields.filter(({ scalar }) => scalar === ScalarType.BYTES);
  /** Returns the chunk of a part, if any, and the name of its field. */
  const chunkOf = (part: Message): { readonly name: string; readonly data: Uint8Array } | undefined => {
    for (const { name, localName } of dataFields) {
      const data: unknown = Reflect.get(part, localName);
      if (data instanceof Uint8Array && data.length > 0) return { name, data };
    }
    return undefined;
  };

  async function* encode(opening: string, first: IteratorResult<Part>, parts: AsyncIterator<Part>) {
    const text = new FieldText(opening);
    try {
      for (let part = first; !part.done; part = await parts.next()) {
        const chunk = chunkOf(part.value);
        if (chunk) yield Buffer.from(text.add(chunk.name, chunk.data));
      }
      yield Buffer.from(text.end());
    } finally {
      await parts.return?.();
    }
  }

  return async (messages) => {
    const parts = (messages as AsyncIterable<Part>)[Symbol.asyncIterator]();
    const { value: head } = await parts.next();
    if (!head?.header) throw fail("internal", {}, { cause: new Error(`${answer.typeName}: the stream has no header`) });
    const opening = JSON.stringify(write(head.header)).slice(0, -1);
    const first = await parts.next();
    const chunks = encode(opening, first, parts);
    return first.done ? { contentLength: Buffer.byteLength(new FieldText(opening).end()), chunks } : { chunks };
  };
}

/** Encodes bytes fields at the end of a JSON object. */
class FieldText {
  #pending: string;
  #name: string | undefined;
  /** Up to two bytes that wait for the next chunk, because Base64 encodes three bytes as four characters. */
  #carried = Buffer.alloc(0);

  constructor(opening: string) {
    this.#pending = opening;
  }

  add(name: string, data: Uint8Array): string {
    const opening = this.#name === name ? "" : `${this.#close()},"${name}":"`;
    this.#name = name;
    const joined = Buffer.concat([this.#carried, data]);
    const usable = joined.length - (joined.length % 3);
    this.#carried = Buffer.from(joined.subarray(usable));
    return this.#take() + opening + joined.toString("base64", 0, usable);
  }

  end(): string {
    const closing = this.#close();
    return `${this.#take()}${closing}}\n`;
  }

  #close(): string {
    const rest = this.#carried.toString("base64");
    this.#carried = Buffer.alloc(0);
    return this.#name === undefined ? "" : `${rest}"`;
  }

  #take(): string {
    const pending = this.#pending;
    this.#pending = "";
    return pending;
  }
}
