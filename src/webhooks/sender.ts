import { type Clock, systemClock } from "../platform/clock.ts";
import type { Config } from "../platform/config.ts";
import { failFields } from "../platform/errors.ts";
import type { Part } from "../platform/lifetime.ts";
import { FetchFault, type FetchFaultReason } from "../platform/outgoing/fetch-fault.ts";
import type { FetchTimes } from "../platform/outgoing/request-time.ts";
import { type FetchAnswer, SafeFetch, type SafeFetchOptions } from "../platform/outgoing/safe-fetch.ts";
import { signatureHeaders } from "./signature.ts";

/** An event, ready to be sent. */
export interface OutgoingEvent {
  readonly id: string;
  readonly type: string;
  readonly createdAt: Date;
  /** The envelope in JSON, the same text at each attempt. */
  readonly body: string;
}

/** One attempt at a delivery. */
export interface Attempt {
  readonly url: string;
  /** Those that sign, the newest first. */
  readonly secrets: readonly string[];
  readonly event: OutgoingEvent;
}

/** What became of an attempt. It has a status or an error, or both where an answer broke off after its head. */
export interface Answer {
  readonly startedAt: Date;
  readonly durationMs: number;
  /** Decides alone whether the event is delivered: 2xx is. */
  readonly status?: number;
  /** The first 200 bytes of the answer's body, as text without NUL and without what is no UTF-8. */
  readonly body?: string;
  /** Why there was no answer, or not all of it. */
  readonly error?: FetchFaultReason;
}

/** Sends events to endpoints, whose addresses strangers choose. */
export interface Sender extends Part {
  /** Fails with `bad-request` where nothing may be sent to an address. A name that does not resolve yet is accepted. */
  check(url: string): Promise<void>;
  /** Signs an event and sends it once. Throws nothing but the signal's reason. */
  send(attempt: Attempt, signal: AbortSignal): Promise<Answer>;
  /** Ends all connections. */
  stop(): void;
}

export interface SenderOptions extends Pick<SafeFetchOptions, "resolve" | "ca"> {
  readonly config: Pick<Config, "webhookAllow">;
  readonly clock?: Clock;
  /** Milliseconds for a whole exchange. */
  readonly timeoutMs?: number;
}

/** How long an attempt takes at most, from the resolving of the name to the end of the answer. */
const wholeMs = 15_000;

/** How long we go on reading once the answer's head, which decides, has come. */
const bodyMs = 2_000;

/** How much of an answer's body the log of deliveries keeps. */
const keptBytes = 200;

/** How much of a body is read so that its connection can be used again: a new one costs more than this, less than more. */
const maxBytes = 16_384;

/** Makes a sender. */
export function createSender({ config, clock = systemClock, timeoutMs = wholeMs, ...options }: SenderOptions): Sender {
  const fetch = new SafeFetch({ allow: config.webhookAllow, ...options });
  const times: FetchTimes = { connect: timeoutMs, head: timeoutMs, silence: bodyMs, whole: timeoutMs };

  async function exchange({ url, secrets, event }: Attempt, signal: AbortSignal): Promise<Partial<Answer>> {
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
      const begun = performance.now();
      const outcome = await exchange(attempt, signal).catch((fault: unknown) => ({ error: reasonOf(fault) }));
      return { startedAt, durationMs: Math.round(performance.now() - begun), ...outcome };
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

/** Reads what is kept of an answer, and a little more, so that its connection can be used again. */
async function readBeginning({ body, cancel }: FetchAnswer): Promise<Pick<Answer, "body" | "error">> {
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
    // We have left it ourselves: what it would have said is of no interest.
    return error === "timeout" || error === "too_large" ? text() : { ...text(), error };
  } finally {
    clearTimeout(enough);
  }
}

/** The log cannot keep a NUL. A character that is cut at the end is left out. */
function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes, { stream: true }).replaceAll("\0", "\uFFFD");
}

function reasonOf(fault: unknown): FetchFaultReason {
  if (fault instanceof FetchFault) return fault.reason;
  throw fault;
}
