import { createHmac, randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { PilothouseResponseError, type ServiceEvent } from "../../../typescript/src/index.ts";
import type { Command, Invocation } from "../command.ts";
import { findUrl } from "../credentials.ts";
import { describeError } from "../exit-codes.ts";
import { UsageError } from "../usage-error.ts";

/** Milliseconds between two attempts to follow the events. */
const retryMs = 1_000;
/** Milliseconds that a program may take to respond: as long as the service allows webhook endpoints. */
const answerMs = 15_000;

/** Creates the headers of a delivery, with both formats of the signature. */
function deliveryHeaders(secret: string, { id = "", type, created_at }: ServiceEvent, body: string) {
  const seconds = (ms: number) => String(Math.floor(ms / 1_000));
  const timestamp = seconds(Date.now());
  const sign = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text);
  const bytes = Buffer.from(secret.slice("whsec_".length), "base64");
  return {
    "content-type": "application/json",
    "x-service-event-id": id,
    "x-service-event-type": type,
    "x-service-emitted-at": seconds(Date.parse(created_at)),
    "x-service-signature": `t=${timestamp},v1=${sign(secret, `${timestamp}.${body}`).digest("hex")}`,
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${sign(bytes, `${id}.${timestamp}.${body}`).digest("base64")}`,
  };
}

/** Sends an event to the program. Returns the status of the response, or the reason why none was received. */
async function forward(to: URL, secret: string, event: ServiceEvent, signal: AbortSignal): Promise<string> {
  const body = JSON.stringify(event);
  const init = { method: "POST", headers: deliveryHeaders(secret, event, body), body, redirect: "manual" as const };
  try {
    const response = await fetch(to, { ...init, signal: AbortSignal.any([signal, AbortSignal.timeout(answerMs)]) });
    await response.body?.cancel();
    return String(response.status);
  } catch (error) {
    signal.throwIfAborted();
    return reasonOf(error);
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // The message of fetch itself is only "fetch failed".
  return error.cause instanceof Error ? error.cause.message : error.message;
}

/**
 * Follows the events after the newest one, and forwards them in order. Throws if the signal aborts or an error is
 * final.
 */
async function follow({ client, env, output, signal }: Invocation, to: URL, secret: string): Promise<void> {
  const url = findUrl(env);
  let last: string | undefined;
  let isBegun = false;
  for (;;) {
    try {
      if (!isBegun) {
        last = await newestEvent(client(), signal);
        isBegun = true;
        output.progress(`Events go to ${to.href}, signed with ${secret}`);
      }
      const options = { signal, ...(last !== undefined && { afterEventId: last }) };
      for await (const event of client().events(options)) {
        const began = performance.now();
        const answer = await forward(to, secret, event, signal);
        const ms = Math.round(performance.now() - began);
        output.result(
          { id: event.id, type: event.type, answer, ms },
          `${event.type} ${event.id}: ${answer} after ${ms} ms`,
        );
        last = event.id ?? last;
      }
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof PilothouseResponseError && [401, 403, 404].includes(error.status)) throw error;
      output.progress(`pilothouse: ${describeError(error, url).line}; trying again`);
    }
    await delay(retryMs, undefined, { signal });
  }
}

/** Returns the id of the newest event, to resume after it if the connection breaks before its first event. */
async function newestEvent(client: ReturnType<Invocation["client"]>, signal: AbortSignal): Promise<string | undefined> {
  for await (const { id } of client.list<{ id: string }>("/v1/events", { limit: 1 }, { signal })) return id;
  return undefined;
}

/** Forwards the events of the account to a local program, in the form of webhooks. */
export const listenCommand: Command = {
  summary: "forwards the events of the account to a local program, signed as webhooks",
  positionals: "",
  count: [0, 0],
  options: {
    forward: { type: "string", value: "URL", help: "address of the program, such as http://127.0.0.1:3000/hooks" },
  },
  async run(invocation) {
    const to = URL.parse(invocation.values.text("forward") ?? "");
    if (!to || !/^https?:$/.test(to.protocol))
      throw new UsageError("expected an address such as http://127.0.0.1:3000/hooks for --forward");
    await follow(invocation, to, `whsec_${randomBytes(24).toString("base64")}`);
  },
};
