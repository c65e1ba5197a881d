import { Readable } from "node:stream";
import { type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { fail } from "../../src/platform/errors.ts";
import { compileWriter, type MessageWriter } from "../../src/platform/rest-json/writer.ts";

/** A JSON body that is written while the bytes of the capture arrive. */
export interface StreamedBody {
  readonly contentLength: number;
  readonly body: Readable;
}

const closing = '"}\n';

/** A message of a `streamed_by` method. */
type Part = Message & { readonly header?: Message & { readonly bytes: bigint }; readonly data: Uint8Array };

/**
 * Compiles the writer of a message whose single bytes field is streamed (option `streamed_by`). The first part contains
 * the other fields and the size, so the content length is known at the start. Holds one chunk at a time.
 */
export function compileStreamedBody(
  answer: DescMessage,
  part: DescMessage,
): (parts: AsyncIterable<Message>) => Promise<StreamedBody> {
  const dataName = answer.fields.find((field) => field.scalar === ScalarType.BYTES)?.name;
  const headerType = part.fields.find((field) => field.name === "header")?.message;
  if (dataName === undefined || !headerType?.fields.some((field) => field.name === "bytes")) {
    throw new Error(`${part.typeName} cannot stream ${answer.typeName}: it needs a header with a size in bytes`);
  }
  const writeHeader = compileWriter(headerType);
  return async (parts) => {
    const iterator = (parts as AsyncIterable<Part>)[Symbol.asyncIterator]();
    const first = await iterator.next();
    if (first.done || !first.value.header) {
      throw fail("internal", {}, { cause: new Error(`${part.typeName}: the first message carries no header`) });
    }
    const { header } = first.value;
    const opening = openingOf(writeHeader, header, dataName);
    const size = Number(header.bytes);
    return {
      contentLength: Buffer.byteLength(opening) + Math.ceil(size / 3) * 4 + closing.length,
      body: Readable.from(encode(new BodyText(opening, size), first, iterator), {
        objectMode: false,
        highWaterMark: 1,
      }),
    };
  };
}

function openingOf(writeHeader: MessageWriter, header: Message, dataName: string): string {
  return `${JSON.stringify(writeHeader(header)).slice(0, -1)},"${dataName}":"`;
}

async function* encode(
  body: BodyText,
  first: IteratorResult<Part>,
  parts: AsyncIterator<Part>,
): AsyncGenerator<Buffer> {
  try {
    for (let part = first; !part.done; part = await parts.next()) {
      const text = body.add(part.value.data);
      if (text !== "") yield Buffer.from(text);
    }
    body.assertComplete();
  } finally {
    await parts.return?.();
  }
}

/**
 * Encodes a body while its bytes arrive. A short capture is written as one piece, since each piece costs a write and
 * wakes the reader.
 */
class BodyText {
  readonly #size: number;
  #opening: string;
  #received = 0;
  /** Up to two bytes that wait for the next chunk, because Base64 encodes three bytes as four characters. */
  #carried = Buffer.alloc(0);

  constructor(opening: string, size: number) {
    this.#opening = opening;
    this.#size = size;
  }

  add(data: Uint8Array): string {
    if (data.length === 0 && this.#size > 0) return "";
    this.#received += data.length;
    const isLast = this.#received >= this.#size;
    if (isLast) this.assertComplete();
    const chunk = Buffer.from(data.buffer, data.byteOffset, data.length);
    const joined = this.#carried.length === 0 ? chunk : Buffer.concat([this.#carried, chunk]);
    const usable = isLast ? joined.length : joined.length - (joined.length % 3);
    this.#carried = Buffer.from(joined.subarray(usable));
    const text = this.#opening + joined.toString("base64", 0, usable) + (isLast ? closing : "");
    this.#opening = "";
    return text;
  }

  /**
   * Throws if the capture has fewer or more bytes than its header announced. The status was already sent, so only a
   * broken connection can report the error.
   */
  assertComplete(): void {
    if (this.#received === this.#size) return;
    throw new Error(`expected ${this.#size} bytes of the capture, got ${this.#received}`);
  }
}
