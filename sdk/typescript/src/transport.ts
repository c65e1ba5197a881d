import { PilothouseConnectionError, PilothouseResponseError, PilothouseTimeoutError, readError } from "./errors.ts";
import { delay, type Repetition, repetitionOf, retryDelay } from "./retries.ts";

/** Options of a client. */
export interface ClientOptions {
  /** API key, or a login token. Default: the environment variable PILOTHOUSE_API_KEY. */
  readonly apiKey?: string;
  /** Address of the service. Default: the environment variable PILOTHOUSE_URL, else `http://localhost:8080`. */
  readonly baseUrl?: string;
  /** Retries of a call after temporary errors. Default: 2. */
  readonly maxRetries?: number;
  /** Milliseconds until a call, including its retries, fails. Default: 60,000 more than the call's own `timeout_ms`, `wait_for_slot_ms` and `wait_ms`. */
  readonly timeoutMs?: number;
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof fetch;
  /** Receives an entry after each attempt. Entries contain no keys, queries or bodies. */
  readonly log?: (entry: LogEntry) => void;
}

/** Options of a call. */
export interface CallOptions {
  /** Cancels the call, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  readonly maxRetries?: number;
  /** Identifies the request, so that a repetition has no second effect. Default: a random key where the service accepts one. */
  readonly idempotencyKey?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Query parameters. Undefined ones are left out, and a list is repeated. */
export type Query = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** Content of a request. An object without a byte type is sent as JSON. */
export interface RequestContent {
  readonly query?: Query;
  readonly body?: object;
  readonly content?: Blob | Uint8Array<ArrayBuffer> | string | ReadableStream<Uint8Array>;
}

/** Outcome of an attempt of a request. */
export interface LogEntry {
  readonly method: string;
  readonly path: string;
  /** Number of the attempt, from 1. */
  readonly attempt: number;
  readonly durationMs: number;
  /** Absent if no response was received. */
  readonly status?: number;
  readonly requestId?: string;
  /** Milliseconds until the next attempt, if there will be one. */
  readonly retryInMs?: number;
  readonly error?: Error;
}

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

const defaultUrl = "http://localhost:8080";
const defaultTimeoutMs = 60_000;
const defaultRetries = 2;

/** Reads an environment variable. Browsers have none. */
function environment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name] || undefined;
}

/** Sends requests of a client, with its retries, deadlines and log entries. */
export class Transport {
  readonly baseUrl: string;
  readonly key: string;
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    const key = options.apiKey ?? environment("PILOTHOUSE_API_KEY");
    if (!key) throw new TypeError("expected an API key, got none: pass apiKey, or set PILOTHOUSE_API_KEY");
    this.key = key;
    this.#options = options;
    this.baseUrl = (options.baseUrl ?? environment("PILOTHOUSE_URL") ?? defaultUrl).replace(/\/+$/, "");
  }

  /** Sends a request and returns its JSON response, or undefined for a response without content. */
  json<Result>(method: Method, path: string, request: RequestContent = {}, options: CallOptions = {}): Promise<Result> {
    return this.#call(method, path, request, options, async (response) => {
      const text = await response.text();
      // The generated types describe the responses of the service.
      return (text === "" ? undefined : JSON.parse(text)) as Result;
    });
  }

  /** Sends a request and returns its response as soon as the headers are received. The deadline ends then. */
  raw(method: Method, path: string, request: RequestContent = {}, options: CallOptions = {}): Promise<Response> {
    return this.#call(method, path, request, options, (response) => Promise.resolve(response));
  }

  async #call<Result>(
    method: Method,
    path: string,
    request: RequestContent,
    options: CallOptions,
    read: (response: Response) => Promise<Result>,
  ): Promise<Result> {
    const repetition = repetitionOf(method, path, options.idempotencyKey !== undefined);
    const canRepeat = repetition !== "never" && !(request.content instanceof ReadableStream);
    const retries = canRepeat ? (options.maxRetries ?? this.#options.maxRetries ?? defaultRetries) : 0;
    const headers = this.#headers(request, options);
    if (repetition === "key" && !headers.has("idempotency-key")) headers.set("idempotency-key", crypto.randomUUID());
    const deadline = startDeadline(this.timeoutOf(request, options), options.signal);
    const { signal } = deadline;
    try {
      for (let attempt = 0; ; attempt++) {
        const entry = { method, path, attempt: attempt + 1 };
        const result = await this.#attempt(
          entry,
          { ...request, headers, signal },
          read,
          attempt < retries ? repetition : "never",
        );
        if ("value" in result) return result.value;
        if (signal.aborted) throw signal.reason;
        if (result.retryInMs === undefined || result.retryInMs >= deadline.remainingMs()) throw result.error;
        await delay(result.retryInMs, signal);
      }
    } finally {
      deadline.stop();
    }
  }

  async #attempt<Result>(
    about: Pick<LogEntry, "method" | "path" | "attempt">,
    request: RequestContent & { readonly headers: Headers; readonly signal: AbortSignal },
    read: (response: Response) => Promise<Result>,
    repetition: Repetition,
  ): Promise<{ value: Result } | { error: Error; retryInMs: number | undefined }> {
    const began = performance.now();
    let response: Response | undefined;
    const log = (more: Partial<LogEntry>) => {
      const requestId = response?.headers.get("x-request-id");
      const seen = response && { status: response.status, ...(requestId && { requestId }) };
      this.#options.log?.({ ...about, durationMs: performance.now() - began, ...seen, ...more });
    };
    try {
      response = await this.#send(about, request);
      if (!response.ok) throw await readError(response);
      const value = await read(response);
      log({});
      return { value };
    } catch (thrown) {
      const error = asError(thrown, request.signal);
      const retryInMs = retryDelay(error, about.attempt - 1, repetition);
      log({ error, ...(retryInMs !== undefined && { retryInMs }) });
      return { error, retryInMs };
    }
  }

  #send(
    { method, path }: Pick<LogEntry, "method" | "path">,
    { query = {}, body, content, headers, signal }: RequestContent & { headers: Headers; signal: AbortSignal },
  ): Promise<Response> {
    const url = new URL(this.baseUrl + path);
    for (const [name, value] of Object.entries(query)) {
      for (const each of Array.isArray(value) ? value : [value]) {
        if (each !== undefined) url.searchParams.append(name, String(each));
      }
    }
    const send = this.#options.fetch ?? fetch;
    // A redirect could send the key to another host.
    const init = { method, headers, signal, redirect: "error" as const };
    if (content instanceof ReadableStream) return send(url, { ...init, body: content, duplex: "half" } as RequestInit);
    return send(url, { ...init, body: content ?? (body === undefined ? null : JSON.stringify(body)) });
  }

  #headers({ body, content }: RequestContent, { headers: extra = {}, idempotencyKey }: CallOptions): Headers {
    const headers = new Headers({ authorization: `Bearer ${this.key}`, ...extra });
    if (body !== undefined) headers.set("content-type", "application/json");
    if (content !== undefined) headers.set("content-type", "application/octet-stream");
    if (idempotencyKey !== undefined) headers.set("idempotency-key", idempotencyKey);
    return headers;
  }

  /** Returns the milliseconds until a call fails. */
  timeoutOf({ body }: RequestContent, { timeoutMs }: Pick<CallOptions, "timeoutMs">): number {
    const own = waits.reduce((sum, name) => sum + millisecondsIn(body, name), 0);
    return timeoutMs ?? this.#options.timeoutMs ?? defaultTimeoutMs + own;
  }
}

/** Fields of requests with the milliseconds for which the service may wait. */
const waits = ["timeout_ms", "wait_for_slot_ms", "wait_ms"];

function millisecondsIn(body: object | null | undefined, name: string): number {
  const value: unknown = body ? Reflect.get(body, name) : undefined;
  return typeof value === "number" ? value : 0;
}

/**
 * Returns the error of an attempt: the signal's reason after an abort, a connection error for other errors of `fetch`.
 */
function asError(thrown: unknown, signal: AbortSignal): Error {
  if (signal.aborted && signal.reason instanceof Error) return signal.reason;
  if (thrown instanceof PilothouseResponseError) return thrown;
  const cause = thrown instanceof Error ? (thrown.cause ?? thrown) : thrown;
  return new PilothouseConnectionError(`no complete response: ${cause instanceof Error ? cause.message : cause}`, {
    cause: thrown,
  });
}

/** Time limit of a call. The signal aborts at the limit, or with the caller's signal. */
interface Deadline {
  readonly signal: AbortSignal;
  remainingMs(): number;
  /** Stops the timer. The signal still follows the caller's signal. */
  stop(): void;
}

/** Starts a deadline, whose signal aborts with PilothouseTimeoutError. */
export function startDeadline(ms: number, other: AbortSignal | undefined): Deadline {
  const controller = new AbortController();
  const end = performance.now() + ms;
  const timer = setTimeout(() => controller.abort(new PilothouseTimeoutError(`no response within ${ms} ms`)), ms);
  return {
    signal: other ? AbortSignal.any([controller.signal, other]) : controller.signal,
    remainingMs: () => end - performance.now(),
    stop: () => clearTimeout(timer),
  };
}
