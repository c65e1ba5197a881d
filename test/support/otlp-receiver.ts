import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/** A received span. Identifiers are in hexadecimal; `parent` is empty for the first span of a trace. */
export interface ReceivedSpan {
  readonly trace: string;
  readonly id: string;
  readonly parent: string;
  readonly name: string;
  /** Resource attribute `service.name`. */
  readonly service: string;
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly isError: boolean;
}

/** Collector that receives spans by OTLP over HTTP in protobuf, as defined by opentelemetry-proto 1.x. */
export class OtlpReceiver implements AsyncDisposable {
  readonly bodies: Buffer[] = [];
  /** Headers of the requests. */
  readonly headers: NodeJS.Dict<string | string[]>[] = [];
  readonly #server = createServer(async (request, response) => {
    const isOtlp = request.url === "/v1/traces" && request.headers["content-type"] === "application/x-protobuf";
    this.headers.push(request.headers);
    this.bodies.push(await buffer(request));
    response.writeHead(isOtlp ? 200 : 404, { "content-type": "application/x-protobuf" }).end();
  });

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Returns the received spans of a trace. */
  spansOf(trace: string): ReceivedSpan[] {
    return this.bodies.flatMap(decode).filter((span) => span.trace === trace);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** Fields of a message by number. Nested messages, strings and bytes are read as bytes. */
class Fields {
  readonly #values = new Map<number, (Uint8Array | number)[]>();

  constructor(bytes: Uint8Array) {
    const reader = new BinaryReader(bytes);
    while (reader.pos < reader.len) {
      const [number, type] = reader.tag();
      const values = this.#values.get(number) ?? [];
      this.#values.set(number, values);
      if (type === WireType.LengthDelimited) values.push(reader.bytes());
      else if (type === WireType.Varint) values.push(Number(reader.int64()));
      else if (type === WireType.Bit64) values.push(reader.double());
      else values.push(reader.fixed32());
    }
  }

  bytes(number: number): Uint8Array[] {
    return (this.#values.get(number) ?? []).filter((value) => value instanceof Uint8Array);
  }

  messages(number: number): Fields[] {
    return this.bytes(number).map((bytes) => new Fields(bytes));
  }

  text(number: number): string {
    return Buffer.from(this.bytes(number)[0] ?? []).toString();
  }

  hex(number: number): string {
    return Buffer.from(this.bytes(number)[0] ?? []).toString("hex");
  }

  number(number: number): number | undefined {
    return this.#values.get(number)?.find((value) => typeof value === "number");
  }
}

/** Reads KeyValue messages. Of the values, strings (field 1) and integers (field 3) occur. */
function readAttributes(pairs: readonly Fields[]): Record<string, string | number> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const value = pair.messages(2)[0];
      return [pair.text(1), value?.number(3) ?? value?.text(1) ?? ""];
    }),
  );
}

/** Decodes an ExportTraceServiceRequest. */
function decode(body: Uint8Array): ReceivedSpan[] {
  return new Fields(body).messages(1).flatMap((resourceSpans) => {
    const resource = readAttributes(resourceSpans.messages(1).flatMap((fields) => fields.messages(1)));
    const spans = resourceSpans.messages(2).flatMap((scopeSpans) => scopeSpans.messages(2));
    return spans.map((span) => ({
      trace: span.hex(1),
      id: span.hex(2),
      parent: span.hex(4),
      name: span.text(5),
      service: String(resource["service.name"]),
      attributes: readAttributes(span.messages(9)),
      isError: span.messages(15)[0]?.number(3) === 2,
    }));
  });
}
