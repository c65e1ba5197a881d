/**
 * A process that sends to receivers all at once and prints what that took: its memory, and each attempt's outcome. It
 * reads what to do as JSON from its standard input, once the receivers listen.
 */
import { json } from "node:stream/consumers";
import { setInterval, setTimeout } from "node:timers/promises";
import { type Answer, createSender } from "../../src/webhooks/sender.ts";
import { pssBytes } from "../../tools/bench/processes.ts";

/** What to send to, and whom to trust. */
export interface HostileErrand {
  readonly ca: string;
  /** A sound receiver, for what any process does at its first delivery. */
  readonly sound: string;
  /** All at once. */
  readonly hostile: readonly string[];
}

/** What became of it. */
export interface HostileOutcome {
  readonly before: number;
  /** The most while the attempts were under way. */
  readonly most: number;
  readonly answers: readonly Answer[];
}

// The boundary where the errand gets its type: the test writes it.
const { ca, sound, hostile } = (await json(process.stdin)) as HostileErrand;
const sender = createSender({
  config: { webhookAllow: ["127.0.0.0/8"] },
  resolve: async () => [{ address: "127.0.0.1", family: 4 }],
  ca,
});
const body = JSON.stringify({ id: "evt_1", type: "session.completed", data: { text: "x".repeat(1_000) } });
const event = { id: "evt_1", type: "session.completed", createdAt: new Date(), body };
const send = (url: string): Promise<Answer> =>
  sender.send({ url, secrets: [`whsec_${"A".repeat(32)}`], event }, new AbortController().signal);

/**
 * Sends to a sound receiver until a round of events adds nothing to speak of to the memory. V8 lets the heap of a young
 * process grow by 100 MiB for the garbage that sending leaves, whoever is sent to: half-grown, it would be measured instead
 * of what connections take.
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
let most = before;
const watched = new AbortController();
async function watch(): Promise<void> {
  for await (const _ of setInterval(100, undefined, { signal: watched.signal })) {
    most = Math.max(most, pssBytes(process.pid));
  }
}
const watching = watch().catch(() => undefined);
const sent: Promise<Answer>[] = [];
for (const [index, url] of hostile.entries()) {
  sent.push(send(url));
  // All are under way within some two seconds, and the slowest of them for 15.
  if (index % 10 === 9) await setTimeout(20);
}
const answers = await Promise.all(sent);
watched.abort();
await watching;
sender.stop();
process.stdout.write(JSON.stringify({ before, most, answers } satisfies HostileOutcome));
