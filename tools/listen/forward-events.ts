import { sleep } from "../../src/platform/bounded-wait.ts";
import { StartRefused } from "../../src/platform/start-refused.ts";
import { createSender, type Sender } from "../../src/webhooks/sender.ts";
import { callService, Unreachable } from "../run-command.ts";
import { readEventStream, type StreamEvent } from "./event-stream.ts";

/** Whose events to forward, and where to. */
export interface Forwarding {
  readonly service: string;
  readonly key: string;
  readonly forward: URL;
  readonly secret: string;
  readonly print: (line: string) => void;
  /** Milliseconds without a byte after which a connection is given up: the service says every 15 s that it is there. */
  readonly silenceMs?: number;
}

/** Milliseconds between two attempts to reach the service. */
const againAfter = 1_000;

/** Forwards an account's events, in order, from now on until the signal aborts. What the program answers changes nothing. */
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

/** Asks the service; throws a StartRefused where no later answer would differ. */
async function ask({ service, key }: Forwarding, path: string, init: RequestInit): Promise<Response> {
  const headers = { ...init.headers, authorization: `Bearer ${key}` };
  const response = await callService(service, path, { ...init, headers });
  if (response.ok) return response;
  // The boundary where a problem document gets its shape: every error of the service is one.
  const { detail = response.statusText } = (await response.json().catch(() => ({}))) as { detail?: string };
  const said = `${service} answered ${response.status}: ${detail}`;
  throw response.status === 401 || response.status === 403 || response.status === 404
    ? new StartRefused(said)
    : new Error(said);
}

/** Where "from now on" begins, so that nothing is lost when the connection breaks before its first event. */
async function newestEvent(forwarding: Forwarding, signal: AbortSignal): Promise<string | undefined> {
  const response = await ask(forwarding, "/v1/events?limit=1", { signal });
  // The boundary where the answer gets its shape: the contract's.
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
  // The boundary where an event gets its shape: the contract's.
  const { created_at } = JSON.parse(data) as { created_at: string };
  const event = { id, type, createdAt: new Date(created_at), body: data };
  const { status, error, durationMs } = await sender.send({ url: forward.href, secrets: [secret], event }, signal);
  print(`${type} ${id}: ${[status, error].filter(Boolean).join(" ")} after ${durationMs} ms`);
}
