import { PilothouseConnectionError, PilothouseResponseError, slugOf } from "./errors.ts";
import type { Problem, ServiceEvent } from "./gen/schema.ts";
import { delay, retryDelay } from "./retries.ts";
import type { CallOptions, Transport } from "./transport.ts";

/** Item of a stream. Its type may end the stream. */
interface StreamItem {
  readonly id?: string;
  readonly type: string;
}

/** Options of a stream of events. */
export interface EventOptions extends Pick<CallOptions, "signal"> {
  /** Starts after this event. Default: from now on. */
  readonly afterEventId?: string;
  /** Milliseconds without data after which a connection is replaced. Default: 45,000, as the service is silent for 15,000. */
  readonly silenceMs?: number;
}

/** Stream to open. */
interface StreamSource {
  readonly transport: Transport;
  readonly path: string;
  /** Types of items after which the service ends the stream. */
  readonly last: ReadonlySet<string>;
  /**
   * Returns whether to end the stream. Called if the connection broke before the first item, so that the end may be
   * missed.
   */
  readonly hasEnded?: () => Promise<boolean>;
}

/** The service sends a comment after 15 s without events. A connection silent for longer is broken. */
const defaultSilenceMs = 45_000;
/** Consecutive connections without an event that are tolerated. After one more, the stream fails. */
const maxEmptyConnections = 8;
/** Longest line of a stream: the service sends none longer than 1 MiB. */
const maxLine = 4 * 2 ** 20;

/**
 * Connects to a stream of events or log entries, and returns its items. Reconnects after the last received item if the
 * connection breaks, so that no item is lost or repeated. Ends after an item of a type in `last`, or with the session.
 */
export async function openEvents<Item extends StreamItem = ServiceEvent>(
  source: StreamSource,
  options: EventOptions = {},
): Promise<AsyncGenerator<Item>> {
  const connection = await connect<Item>(source, options.afterEventId, options);
  return follow(source, options, connection);
}

async function* follow<Item extends StreamItem>(
  source: StreamSource,
  options: EventOptions,
  first: Connection<Item>,
): AsyncGenerator<Item> {
  const { signal } = options;
  let connection = first;
  let lastId = options.afterEventId;
  let emptyConnections = 0;
  for (;;) {
    try {
      for await (const { id, event } of connection.frames) {
        if (event === undefined) {
          // The first frame of a stream has the id after which the stream starts.
          lastId ??= id;
          continue;
        }
        emptyConnections = 0;
        if (event.id !== undefined && event.id === lastId) continue;
        lastId = event.id ?? lastId;
        yield event;
        if (source.last.has(event.type)) return;
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (connection !== first && isSessionEnd(error)) return;
      if (retryDelay(error, 0) === undefined) throw error;
    } finally {
      connection.close();
    }
    signal?.throwIfAborted();
    if (++emptyConnections > maxEmptyConnections)
      throw new PilothouseConnectionError(`the stream broke ${emptyConnections} times in a row`);
    await delay(retryDelay(new PilothouseConnectionError(), emptyConnections - 1) ?? 0, signal);
    try {
      connection = await connect(source, lastId, options);
    } catch (error) {
      if (isSessionEnd(error)) return;
      throw error;
    }
    if (lastId === undefined && (await source.hasEnded?.())) return connection.close();
  }
}

/** Returns whether a connection after the first failed because the session ended, so that all its items were received. */
function isSessionEnd(error: unknown): boolean {
  return error instanceof PilothouseResponseError && error.slug === "session-destroyed";
}

/** Frame of a stream. The frame of an opened stream has only an id. */
interface EventFrame<Item> {
  readonly id?: string;
  readonly event?: Item;
}

interface Connection<Item> {
  readonly frames: AsyncIterable<EventFrame<Item>>;
  close(): void;
}

async function connect<Item>(
  { transport, path }: StreamSource,
  lastId: string | undefined,
  { signal, silenceMs = defaultSilenceMs }: EventOptions,
): Promise<Connection<Item>> {
  const controller = new AbortController();
  const both = signal ? AbortSignal.any([controller.signal, signal]) : controller.signal;
  const headers = { accept: "text/event-stream", ...(lastId !== undefined && { "last-event-id": lastId }) };
  const response = await transport.raw("GET", path, {}, { headers, signal: both, maxRetries: maxEmptyConnections });
  return {
    frames: readEvents(response, controller, silenceMs),
    close: () => controller.abort(new PilothouseConnectionError("the stream was closed")),
  };
}

/** Reads the events of a response. Throws the problem of an `error` event. */
async function* readEvents<Item>(
  response: Response,
  controller: AbortController,
  silenceMs: number,
): AsyncGenerator<EventFrame<Item>> {
  for await (const { id, type, data } of readFrames(readLines(response, controller, silenceMs))) {
    if (data === undefined) {
      yield { id };
      continue;
    }
    const parsed: unknown = JSON.parse(data);
    // The service writes problems and events in the shapes of its document.
    if (type === "error") throw problemError(parsed as Problem, response);
    yield { id, event: parsed as Item };
  }
}

function problemError(problem: Problem, { status, headers }: Response): PilothouseResponseError {
  const known = slugOf(problem) === "internal" ? { ...problem, type: "/errors/internal" } : problem;
  const requestId = headers.get("x-request-id") ?? undefined;
  return new PilothouseResponseError({ problem: known, status: problem.status ?? status, requestId, headers });
}

/** Reads frames of Server-Sent Events. An unfinished last frame is dropped, as the standard requires. */
async function* readFrames(
  lines: AsyncIterable<string>,
): AsyncGenerator<{ id: string; type: string; data: string | undefined }> {
  let [id, type] = ["", ""];
  let data: string[] = [];
  for await (const line of lines) {
    if (line === "") {
      if (data.length > 0 || id !== "") yield { id, type, data: data.length > 0 ? data.join("\n") : undefined };
      [id, type, data] = ["", "", []];
      continue;
    }
    const [, field = "", value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === "id") id = value;
    if (field === "event") type = value;
    if (field === "data") data.push(value);
  }
}

async function* readLines({ body }: Response, controller: AbortController, silenceMs: number): AsyncGenerator<string> {
  if (!body) return;
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await readWithin(reader, controller, silenceMs);
    if (done) return;
    const lines = (rest + decoder.decode(value, { stream: true })).split(/\r\n|\n|\r(?=.)/);
    rest = lines.pop() ?? "";
    if (rest.length > maxLine) throw new PilothouseConnectionError(`expected lines below ${maxLine} characters`);
    yield* lines;
  }
}

/** Reads a chunk. If the connection is silent for too long, it is closed, and the read fails. */
async function readWithin(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  controller: AbortController,
  silenceMs: number,
) {
  const silent = new PilothouseConnectionError(`the stream was silent for ${silenceMs} ms`);
  const timer = setTimeout(() => controller.abort(silent), silenceMs);
  try {
    return await reader.read();
  } catch (cause) {
    throw new PilothouseConnectionError("the stream broke", { cause });
  } finally {
    clearTimeout(timer);
  }
}
