import { type Clock, systemClock } from "../platform/clock.ts";
import type { Config } from "../platform/config.ts";
import { failFields } from "../platform/errors.ts";
import type { Part } from "../platform/lifetime.ts";
import { FetchFault, type FetchFaultReason } from "../platform/outgoing/fetch-fault.ts";
import type { FetchTimes } from "../platform/outgoing/request-time.ts";
import { type FetchAnswer, SafeFetch, type SafeFetchOptions } from "../platform/outgoing/safe-fetch.ts";
import { signatureHeaders } from "./webhook-signature.ts";

/** An event, ready to send. */
export interface OutgoingEvent {
  readonly id: string;
  readonly type: string;
  readonly createdAt: Date;
  /** The envelope as JSON, identical in each attempt. */
  readonly body: string;
}

export interface DeliveryAttempt {
  readonly url: string;
  /** Signing secrets, newest first. */
  readonly secrets: readonly string[];
  readonly event: OutgoingEvent;
}

/** Result of an attempt: a status, an error, or both if the response was truncated after its head. */
export interface DeliveryResponse {
  readonly startedAt: Date;
  readonly durationMs: number;
  /** The event counts as delivered if the status is 2xx. */
  readonly status?: number;
  /** First 200 bytes of the response body as text. U+FFFD replaces NUL and invalid UTF-8. */
  readonly body?: string;
  /** Why there was no complete response. */
  readonly error?: FetchFaultReason | "secret_unreadable";
}

/** Sends events to endpoints. Their URLs are untrusted. */
export interface Sender extends Part {
  /** Throws `bad-request` if the URL is not allowed. A host name that does not resolve yet is accepted. */
  check(url: string): Promise<void>;
  /** Signs and sends an event once. Returns faults of the network as `error`. Throws the reason of the signal. */
  send(attempt: DeliveryAttempt, signal: AbortSignal): Promise<DeliveryResponse>;
  /** Closes all connections. */
  stop(): void;
}

export interface SenderOptions extends Pick<SafeFetchOptions, "resolve" | "ca" | "proxy"> {
  readonly config: Pick<Config, "webhookAllow">;
  readonly clock?: Clock;
  /** Maximum milliseconds of an attempt. Default: 15 s. */
  readonly timeoutMs?: number;
}

/** Maximum milliseconds of an attempt, from name resolution to the end of the response. */
const wholeMs = 15_000;

/** Milliseconds to read the body. The head, which determines the result, has arrived before. */
const bodyMs = 2_000;

/** Bytes of the response body that the delivery log keeps. */
const keptBytes = 200;

/** Maximum bytes of a response to drain before its connection is reused. Beyond this, a new connection is cheaper. */
const maxBytes = 16_384;

export function createSender({ config, clock = systemClock, timeoutMs = wholeMs, ...options }: SenderOptions): Sender {
  const fetch = new SafeFetch({ allow: config.webhookAllow, ...options });
  const times: FetchTimes = { connect: timeoutMs, head: timeoutMs, silence: bodyMs, whole: timeoutMs };

  async function exchange(
    { url, secrets, event }: DeliveryAttempt,
    signal: AbortSignal,
  ): Promise<Partial<DeliveryResponse>> {
    const headers = headersOf(event, secrets, clock.now());
    const request = { method: "POST", headers, body: event.body, signal, times, maxBytes } as const;
    const answer = await fetch.send(url, request);
    return { status: answer.status, ...(await readBeginning(answer)) };
  }

  return {
    async check(url) {
      await fetch.check(url).catch((fault: unknown) => {
        if (!(fault instanceof FetchFault)) throw fault;
        if (fault.reason === "address_not_allowed") throw failFields("bad-request", { url: fault.message });
      });
    },
    async send(attempt, signal) {
      const startedAt = new Date(clock.now());
      const startMs = performance.now();
      const outcome = await exchange(attempt, signal).catch((fault: unknown) => ({ error: reasonOf(fault) }));
      return { startedAt, durationMs: Math.round(performance.now() - startMs), ...outcome };
    },
    stop: () => fetch[Symbol.dispose](),
  };
}

function headersOf(event: OutgoingEvent, secrets: readonly string[], now: number): Record<string, string> {
  const seconds = (ms: number) => Math.floor(ms / 1_000);
  return {
    "Content-Type": "application/json",
    "User-Agent": "Pilothouse-Webhooks/1",
    "X-Service-Event-Id": event.id,
    "X-Service-Event-Type": event.type,
    "X-Service-Emitted-At": String(seconds(event.createdAt.getTime())),
    ...signatureHeaders(secrets, { id: event.id, body: event.body, timestamp: seconds(now) }),
  };
}

/** Reads the beginning of the body, and drains a little more so that the connection can be reused. */
async function readBeginning({ body, cancel }: FetchAnswer): Promise<Pick<DeliveryResponse, "body" | "error">> {
  const kept: Uint8Array[] = [];
  const enough = setTimeout(cancel, bodyMs);
  const text = () => ({ body: textOf(Buffer.concat(kept).subarray(0, keptBytes)) });
  let bytes = 0;
  try {
    for await (const part of body) {
      if (bytes < keptBytes) kept.push(part.subarray(0, keptBytes));
      bytes += part.length;
    }
    return text();
  } catch (fault) {
    const error = reasonOf(fault);
    // The limits of this sender stopped the reading, which is not an error.
    return error === "timeout" || error === "too_large" ? text() : { ...text(), error };
  } finally {
    clearTimeout(enough);
  }
}

/** Decodes UTF-8 without a truncated last character. Replaces NUL, which PostgreSQL cannot store. */
function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes, { stream: true }).replaceAll("\0", "\uFFFD");
}

function reasonOf(fault: unknown): FetchFaultReason {
  if (fault instanceof FetchFault) return fault.reason;
  throw fault;
}
