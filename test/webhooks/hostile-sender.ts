/** Sends to receivers concurrently, as read from stdin in JSON. Prints memory use and the results. */
import { json } from "node:stream/consumers";
import { setInterval, setTimeout } from "node:timers/promises";
import { createSender, type DeliveryResponse } from "../../src/webhooks/sender.ts";
import { pssBytes } from "../../tools/bench/processes.ts";

/** Targets, and the CA certificate to trust. */
export interface HostileErrand {
  readonly ca: string;
  /** Well-behaved receiver, used to warm up the process. */
  readonly sound: string;
  /** Targets of concurrent attempts. */
  readonly hostile: readonly string[];
}

export interface HostileOutcome {
  readonly before: number;
  /** Peak memory during the attempts. */
  readonly max: number;
  readonly answers: readonly DeliveryResponse[];
}

// Typed here: the test writes this shape.
const { ca, sound, hostile } = (await json(process.stdin)) as HostileErrand;
const sender = createSender({
  config: { webhookAllow: ["127.0.0.0/8"] },
  resolve: async () => [{ address: "127.0.0.1", family: 4 }],
  ca,
});
const body = JSON.stringify({ id: "evt_1", type: "session.completed", data: { text: "x".repeat(1_000) } });
const event = { id: "evt_1", type: "session.completed", createdAt: new Date(), body };
const send = (url: string): Promise<DeliveryResponse> =>
  sender.send({ url, secrets: [`whsec_${"A".repeat(32)}`], event }, new AbortController().signal);

/**
 * Sends to the well-behaved receiver until another round adds less than 2 MiB. V8 lets the heap of a young process grow
 * by 100 MiB for the garbage of any delivery. Without the warm-up, the growth would be measured instead of the
 * connections.
 */
async function growHeap(): Promise<void> {
  let [size, rise] = [pssBytes(process.pid), Number.POSITIVE_INFINITY];
  for (let round = 0; rise > 2_097_152 && round < 8; round += 1) {
    for (let count = 0; count < 50; count += 1) await Promise.all(Array.from({ length: 32 }, () => send(sound)));
    rise = pssBytes(process.pid) - size;
    size += rise;
  }
}

await growHeap();
const before = pssBytes(process.pid);
let max = before;
const watched = new AbortController();
async function watch(): Promise<void> {
  for await (const _ of setInterval(100, undefined, { signal: watched.signal })) {
    max = Math.max(max, pssBytes(process.pid));
  }
}
const watching = watch().catch(() => undefined);
const sent: Promise<DeliveryResponse>[] = [];
for (const [index, url] of hostile.entries()) {
  sent.push(send(url));
  // All attempts start within about two seconds; the slowest take 15 s.
  if (index % 10 === 9) await setTimeout(20);
}
const answers = await Promise.all(sent);
watched.abort();
await watching;
sender.stop();
process.stdout.write(JSON.stringify({ before, max, answers } satisfies HostileOutcome));
