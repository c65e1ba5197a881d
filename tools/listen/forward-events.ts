import { sleep } from "../../src/platform/bounded-wait.ts";
import { StartRefused } from "../../src/platform/start-refused.ts";
import { createSender, type Sender } from "../../src/webhooks/sender.ts";
import { callService, Unreachable } from "../run-command.ts";
import { readEventStream, type StreamEvent } from "./event-stream.ts";

/** Source and target of forwarded events. */
export interface Forwarding {
  readonly service: string;
  readonly key: string;
  readonly forward: URL;
  readonly secret: string;
  readonly print: (line: string) => void;
  /** Milliseconds without data after which a connection is closed. The service sends a keep-alive every 15 s. */
  readonly silenceMs?: number;
}

/** Milliseconds between two attempts to connect to the service. */
const againAfter = 1_000;

/** Forwards new events of an account in order until the signal aborts. Ignores the program's responses. */
export async function forwardEvents(forwarding: Forwarding, signal: AbortSignal): Promise<void> {
  const { service, forward, secret, print } = forwarding;
  const port = forward.port || (forward.protocol === "https:" ? "443" : "80");
  const sender = createSender({ config: { webhookAllow: [`${forward.hostname}:${port}`] } });
  let last: string | undefined;
  let isBegun = false;
  try {
    while (!signal.aborted) {
      try {
        if (!isBegun) {
          last = await newestEvent(forwarding, signal);
          print(`Events of ${service} go to ${forward.href}, signed with ${secret}`);
          isBegun = true;
        }
        for await (const event of follow(forwarding, last, signal)) {
          await forwardEvent(forwarding, sender, event, signal);
          last = event.id;
        }
      } catch (error) {
        const isFinal = error instanceof StartRefused && !(error instanceof Unreachable);
        if (signal.aborted || isFinal) throw error;
        print(`No connection (${error instanceof Error ? error.message : error}); trying again`);
      }
      await sleep(againAfter, signal);
    }
  } finally {
    sender.stop();
  }
}

/** Sends a request to the service. Throws StartRefused if retries are useless. */
async function ask({ service, key }: Forwarding, path: string, init: RequestInit): Promise<Response> {
  const headers = { ...init.headers, authorization: `Bearer ${key}` };
  const response = await callService(service, path, { ...init, headers });
  if (response.ok) return response;
  // Casts the body to a problem document, the format of all errors.
  const { detail = response.statusText } = (await response.json().catch(() => ({}))) as { detail?: string };
  const said = `${service} answered ${response.status}: ${detail}`;
  throw response.status === 401 || response.status === 403 || response.status === 404
    ? new StartRefused(said)
    : new Error(said);
}

/** Returns the id of the newest event, to resume after it if the connection breaks before its first event. */
async function newestEvent(forwarding: Forwarding, signal: AbortSignal): Promise<string | undefined> {
  const response = await ask(forwarding, "/v1/events?limit=1", { signal });
  // Casts the body to the response of the contract.
  const { data } = (await response.json()) as { data: readonly { id: string }[] };
  return data[0]?.id;
}

async function* follow(
  forwarding: Forwarding,
  last: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<StreamEvent, void, undefined> {
  const silent = new AbortController();
  const { silenceMs = 45_000 } = forwarding;
  const timer = setTimeout(() => silent.abort(new Error("the service fell silent")), silenceMs);
  try {
    const headers = last === undefined ? {} : { "last-event-id": last };
    const response = await ask(forwarding, "/v1/events/stream", {
      headers,
      signal: AbortSignal.any([signal, silent.signal]),
    });
    forwarding.print("Listening");
    for await (const event of readEventStream(response.body ?? new ReadableStream(), () => timer.refresh())) {
      if (event.type === "error") throw new Error(event.data);
      yield event;
      timer.refresh();
    }
  } finally {
    clearTimeout(timer);
  }
}

async function forwardEvent(
  { forward, secret, print }: Forwarding,
  sender: Sender,
  { id = "", type, data }: StreamEvent,
  signal: AbortSignal,
): Promise<void> {
  // Casts the data to an event of the contract.
  const { created_at } = JSON.parse(data) as { created_at: string };
  const event = { id, type, createdAt: new Date(created_at), body: data };
  const { status, error, durationMs } = await sender.send({ url: forward.href, secrets: [secret], event }, signal);
  print(`${type} ${id}: ${[status, error].filter(Boolean).join(" ")} after ${durationMs} ms`);
}
