import { Readable } from "node:stream";
import { type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { fail } from "../../src/platform/errors.ts";
import { compileWriter, type MessageWriter } from "../../src/platform/rest-json/writer.ts";

/** A JSON body that is written while its bytes arrive. */
export interface StreamedBody {
  readonly contentLength: number;
  readonly body: Readable;
}

/** A message of a `streamed_by` method. */
type Part = Message & { readonly header?: Message & { readonly bytes: bigint }; readonly data: Uint8Array };

/**
 * Compiles the writer of a message whose one bytes field comes as a stream (option `streamed_by`). The first part
 * carries the other fields and the size, so the length is known before the first byte, and one chunk is held at a time.
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
    const { header, data } = first.value;
    const prefix = openingOf(writeHeader, header, dataName);
    const size = Number(header.bytes);
    return {
      contentLength: Buffer.byteLength(prefix) + Math.ceil(size / 3) * 4 + '"}'.length,
      body: Readable.from(encode(prefix, data, iterator, size), { objectMode: false, highWaterMark: 1 }),
    };
  };
}

function openingOf(writeHeader: MessageWriter, header: Message, dataName: string): string {
  return `${JSON.stringify(writeHeader(header)).slice(0, -1)},"${dataName}":"`;
}

async function* encode(
  prefix: string,
  first: Uint8Array,
  parts: AsyncIterator<Part>,
  size: number,
): AsyncGenerator<Buffer> {
  const base64 = new Base64Chunks();
  try {
    yield Buffer.from(prefix);
    yield base64.encode(first);
    for (let part = await parts.next(); !part.done; part = await parts.next()) {
      yield base64.encode(part.value.data);
    }
    if (base64.received !== size) {
      // The status is sent: only a broken connection can still tell the client.
      throw new Error(`the capture broke off after ${base64.received} of ${size} bytes`);
    }
    yield Buffer.concat([base64.rest(), Buffer.from('"}')]);
  } finally {
    await parts.return?.();
  }
}

/** Base64 of a stream: three bytes at a time, so what is over waits for the next chunk. */
class Base64Chunks {
  received = 0;
  #carried = Buffer.alloc(0);

  encode(data: Uint8Array): Buffer {
    this.received += data.length;
    const chunk = Buffer.from(data.buffer, data.byteOffset, data.length);
    const joined = this.#carried.length === 0 ? chunk : Buffer.concat([this.#carried, chunk]);
    const usable = joined.length - (joined.length % 3);
    this.#carried = Buffer.from(joined.subarray(usable));
    return Buffer.from(joined.toString("base64", 0, usable), "latin1");
  }

  rest(): Buffer {
    return Buffer.from(this.#carried.toString("base64"), "latin1");
  }
}
