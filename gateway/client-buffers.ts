import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, Http2ServerResponse } from "node:http2";
import { Counter, Gauge, type Registry } from "prom-client";
import { networkOf } from "../src/platform/client-network.ts";
import { fail } from "../src/platform/errors.ts";
import type { PlatformParts } from "../src/platform/platform-parts.ts";

/**
 * Kinds of held bytes: request bodies, received messages of streams, captures that are being collected, unread
 * responses.
 */
const kinds = ["body", "message", "capture", "answer"] as const;

type BufferKind = (typeof kinds)[number];

/**
 * Fewer bytes of a kind count as 0, so that most exchanges cost only one entry of a set. Other limits bound the
 * uncounted bytes. 30 requests per second of 60 s each hold up to 112 MiB; the 256 streams of an account hold up to 16
 * MiB.
 */
const countedFrom = 64 * 1024;

/** Multiple of the budget above which exchanges and connections of the largest holder are closed. */
const closeAbove = 1.25;

/** Milliseconds between two measurements by `BufferSource.measure`. */
const measureEvery = 500;

/** Shortest time between two log lines about an exceeded budget, in milliseconds. */
const reportEvery = 10_000;

/** `Retry-After` of a refused client, in seconds. */
const retryAfterSeconds = 1;

/** An HTTP exchange, gRPC call or WebSocket for which the gateway holds bytes. */
interface BufferSource {
  /**
   * Functions that return the current bytes of a kind. They are called periodically. Other kinds change only by `set`.
   */
  readonly measure: Partial<Record<BufferKind, () => number>>;
  /** Ends the exchange, which releases its bytes. */
  close(): void;
}

/** Call for which bytes are held. `ClientBuffers.open` sets `buffer`. */
interface BufferedCall {
  readonly accountId: string | undefined;
  readonly clientAddress: string;
  buffer: ClientBuffer | undefined;
}

interface BufferOptions extends Pick<PlatformParts, "clock" | "log"> {
  /** Budget in bytes for all clients together. */
  readonly budget: number;
  readonly registry: Registry;
}

/** Bytes that the gateway holds for one exchange or connection, until their release. */
export class ClientBuffer {
  readonly holder: string;
  readonly source: BufferSource;
  readonly #change: (buffer: ClientBuffer, kind: BufferKind, by: number) => void;
  #bytes: Partial<Record<BufferKind, number>> | undefined = {};

  constructor(holder: string, source: BufferSource, change: ClientBuffers["change"]) {
    this.holder = holder;
    this.source = source;
    this.#change = change;
  }

  /** Sets how many bytes of a kind are held. */
  set(kind: BufferKind, bytes: number): void {
    if (!this.#bytes) return;
    const counted = bytes < countedFrom ? 0 : bytes;
    const by = counted - (this.#bytes[kind] ?? 0);
    if (by === 0) return;
    this.#bytes[kind] = counted;
    this.#change(this, kind, by);
  }

  get isEmpty(): boolean {
    return kinds.every((kind) => !this.#bytes?.[kind]);
  }

  /** Releases all bytes, and ignores later calls of `set`. */
  release(): void {
    for (const kind of kinds) this.set(kind, 0);
    this.#bytes = undefined;
  }
}

/**
 * The bytes that a gateway holds for clients, within one budget. Above the budget, calls and messages of holders above
 * their share are refused. Above 1.25 times the budget, the exchanges and connections of the largest holder are closed.
 * A holder is an account, or a client address for calls without an account. The share is the budget divided by the
 * number of holders.
 */
export class ClientBuffers {
  readonly #options: BufferOptions;
  readonly #open = new Set<ClientBuffer>();
  readonly #holders = new Map<string, number>();
  readonly #byKind = new Map<BufferKind, number>();
  readonly #overruns: Counter<"outcome">;
  #total = 0;
  #reportedAt = Number.NEGATIVE_INFINITY;
  #stop: (() => void) | undefined;

  constructor(options: BufferOptions) {
    this.#options = options;
    const { registry } = options;
    this.#overruns = new Counter({
      name: "pilothouse_client_buffer_overruns_total",
      help: "Refusals of calls and messages, and closings of the largest holder, above the budget of bytes held for clients.",
      labelNames: ["outcome"],
      registers: [registry],
    });
    const byKind = this.#byKind;
    new Gauge({
      name: "pilothouse_client_buffer_bytes",
      help: "Bytes that are held for clients: bodies, messages of streams, captures, and unread responses.",
      labelNames: ["kind"],
      registers: [registry],
      collect() {
        for (const kind of kinds) this.set({ kind }, byKind.get(kind) ?? 0);
      },
    });
  }

  /** Starts to measure the open buffers periodically. */
  start(): void {
    this.#stop = this.#options.clock.every(measureEvery, () => {
      for (const buffer of this.#open) {
        for (const kind of kinds) {
          const bytes = buffer.source.measure[kind]?.();
          if (bytes !== undefined) buffer.set(kind, bytes);
        }
      }
    });
  }

  stop(): void {
    this.#stop?.();
  }

  /** Starts to count the bytes held for a call. */
  open(call: BufferedCall, source: BufferSource): ClientBuffer {
    const buffer = new ClientBuffer(holderOf(call), source, this.change);
    this.#open.add(buffer);
    call.buffer = buffer;
    return buffer;
  }

  /** Releases the bytes held for a call. */
  release(buffer: ClientBuffer): void {
    buffer.release();
    this.#open.delete(buffer);
  }

  /** Counts the bytes held for an HTTP exchange until the exchange ends. `bodyBytes` is the largest body allowed. */
  openExchange(call: BufferedCall, request: IncomingMessage, response: ServerResponse, bodyBytes: number): void {
    const buffer = this.open(call, {
      measure: { answer: () => response.writableLength },
      close: () => closeExchange(response),
    });
    buffer.set("body", Math.min(announcedBody(request), bodyBytes));
    response.once("close", () => this.release(buffer));
  }

  /** Throws `rate-limited` if the budget is exceeded and the holder of the call is above its share. */
  assertRoom(call: BufferedCall): void {
    if (!this.refuses(call)) return;
    const mebibytes = Math.ceil((this.#holders.get(holderOf(call)) ?? 0) / 2 ** 20);
    const detail = `the service holds ${mebibytes} MiB of your requests, messages and unread responses; finish and read them`;
    throw fail("rate-limited", { retry_after_seconds: retryAfterSeconds }, { detail, retryAfter: retryAfterSeconds });
  }

  /** Returns whether a call or message must be refused, and records a refusal. */
  refuses(call: BufferedCall): boolean {
    const { budget } = this.#options;
    const isOver = this.#total > budget && (this.#holders.get(holderOf(call)) ?? 0) > budget / this.#holders.size;
    if (isOver) this.#report("refused", holderOf(call));
    return isOver;
  }

  readonly change = ({ holder }: ClientBuffer, kind: BufferKind, by: number): void => {
    this.#total += by;
    this.#byKind.set(kind, (this.#byKind.get(kind) ?? 0) + by);
    const held = (this.#holders.get(holder) ?? 0) + by;
    if (held === 0) this.#holders.delete(holder);
    else this.#holders.set(holder, held);
    if (by > 0 && this.#total > this.#options.budget * closeAbove) this.#closeLargest();
  };

  #closeLargest(): void {
    const [largest] = [...this.#holders].reduce((max, next) => (next[1] > max[1] ? next : max));
    this.#report("closed", largest);
    for (const buffer of this.#open) {
      if (buffer.holder !== largest || buffer.isEmpty) continue;
      this.release(buffer);
      buffer.source.close();
    }
  }

  #report(outcome: "refused" | "closed", holder: string): void {
    this.#overruns.inc({ outcome });
    const now = this.#options.clock.monotonic();
    if (now < this.#reportedAt + reportEvery) return;
    this.#reportedAt = now;
    const fields = { holder, outcome, held_bytes: this.#holders.get(holder), all_held_bytes: this.#total };
    this.#options.log.warn(fields, "exceeded the budget of bytes held for clients");
  }
}

function holderOf({ accountId, clientAddress }: BufferedCall): string {
  return accountId ?? networkOf(clientAddress, { v4: 32, v6: 64 });
}

/** Returns the announced size in bytes of a request's body: 0 if there is no body, Infinity if its size is unknown. */
function announcedBody(request: IncomingMessage): number {
  const { "content-length": length, "transfer-encoding": coding } = request.headers;
  if (length !== undefined) return Number(length);
  const hasBody = request.httpVersionMajor === 1 ? coding !== undefined : !request.complete;
  return hasBody ? Number.POSITIVE_INFINITY : 0;
}

/** Ends an exchange. Over HTTP/1.1 this closes the connection. */
function closeExchange(response: ServerResponse): void {
  if (response instanceof Http2ServerResponse) response.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  else response.destroy();
}
