import { setTimeout as sleep } from "node:timers/promises";
import type { Received } from "./input-ledger.ts";
import type { InputJson, InputStream } from "./input-stream.ts";

const letters = "abcdefghijklmnopqrstuvwxyz";

/** Generates the events of a run: six moves, a click at the last position and a key, repeatedly. */
function* inputOfRun(count: number): Generator<InputJson> {
  for (let index = 0; index < count; index += 1) {
    const step = index % 10;
    const at = { x: 10 + (index % 1_200), y: 10 + (Math.floor(index / 1_200) % 600) };
    const click = { x: 10 + ((index - (step - 5)) % 1_200), y: 10 + (Math.floor((index - (step - 5)) / 1_200) % 600) };
    const key = letters[Math.floor(index / 10) % letters.length] ?? "a";
    if (step < 6) yield { kind: "pointer_move", ...at };
    else if (step === 6) yield { kind: "pointer_down", ...click };
    else if (step === 7) yield { kind: "pointer_up", ...click };
    else yield { kind: step === 8 ? "key_down" : "key_up", key };
  }
}

/** Times at which the events were sent, in milliseconds since the Unix epoch. */
export type SentAt = readonly number[];

/** Sends events individually at a rate. After a delay, overdue events are sent at once. */
export async function sendAtRate(count: number, perSecond: number, send: (event: InputJson) => void): Promise<SentAt> {
  const sentAt: number[] = [];
  const beganAt = performance.now();
  for (const event of inputOfRun(count)) {
    const dueAt = beganAt + (sentAt.length * 1_000) / perSecond;
    const earlyMs = dueAt - performance.now();
    if (earlyMs > 0) await sleep(earlyMs);
    sentAt.push(performance.timeOrigin + performance.now());
    send(event);
  }
  return sentAt;
}

/** Resolves when everything sent on a stream is acknowledged. */
export async function acknowledgedAll(stream: InputStream, timeoutMs = 60_000): Promise<void> {
  const giveUpAt = performance.now() + timeoutMs;
  while (stream.acknowledged.sequence < stream.sent) {
    if (performance.now() > giveUpAt) throw new Error(`${stream.acknowledged.sequence} of ${stream.sent} acknowledged`);
    await sleep(20);
  }
}

/** Returns the page's name for an event. */
function receivedAs({ kind, key, x, y }: InputJson): string {
  const names: Readonly<Record<string, string>> = {
    pointer_move: "mousemove",
    pointer_down: "mousedown",
    pointer_up: "mouseup",
    key_down: "keydown",
    key_up: "keyup",
  };
  return `${names[kind]} ${key ?? `${x},${y}`}`;
}

const isMove = (what: string): boolean => what.startsWith("mousemove");

/** Events of a run that must reach the page: all except moves. */
export function expectedOfRun(count: number): string[] {
  return [...inputOfRun(count)].map(receivedAs).filter((what) => !isMove(what));
}

/** Received events except moves. */
export const presses = (received: readonly Received[]): string[] =>
  received.map(({ what }) => what).filter((what) => !isMove(what));

/** Mouse presses that do not directly follow a move to their position, as each press should. */
export function strayPresses(received: readonly Received[]): string[] {
  let at = "";
  return received.flatMap(({ what }) => {
    if (isMove(what)) at = what;
    return what.startsWith("mousedown") && what.replace("mousedown", "mousemove") !== at ? [what] : [];
  });
}

/** Milliseconds from sending each press to its handler. */
export function latencies(count: number, sentAt: SentAt, received: readonly Received[]): number[] {
  const sent = [...inputOfRun(count)]
    .map(receivedAs)
    .flatMap((what, index) => (isMove(what) ? [] : [sentAt[index] ?? 0]));
  return received.filter(({ what }) => !isMove(what)).map(({ at }, index) => at - (sent[index] ?? at));
}
