import { randomUUID } from "node:crypto";
import type { InputPart, InputProgress } from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { InputEvent } from "../../gen/pilothouse/v1/agent_input_pb.ts";
import { within } from "../../platform/deadline.ts";
import { asFailure, fail } from "../../platform/errors.ts";

/** What may wait to be taken by the worker, in places: beyond, who sends has to wait. */
const most = 256;

/** A part takes a place, each of its events another one, and so many characters of text one more. */
const charactersPerPlace = 4_096;

/** How often in a row a call may break before anything of it was taken. */
const mostBreaks = 3;

/** Milliseconds without input after which a line lets go of its call to the worker. */
const idleAfter = 30_000;

/** Milliseconds that the last input of a line has to reach the worker. */
const closeWithin = 2_000;

/** What a person did, as one message of a client says it. */
export interface Input {
  readonly events: readonly InputEvent[];
  readonly controlEpoch?: bigint | undefined;
  /** The client's own number of the message. */
  readonly sequence: number;
}

/** How much of the input of a line has been taken. */
export interface InputTaken {
  /** `sequence` of the last message that was taken as a whole. */
  readonly sequence: number;
  /** Events on their way to the page, and events that are not, since the line was opened. */
  readonly accepted: number;
  readonly dropped: number;
}

export interface InputListener {
  /** Hears how far the input has come. More is taken when it has heard. */
  onTaken(taken: InputTaken): Promise<void> | void;
  /** Hears why what was waiting will not be taken. What is sent after that begins anew. */
  onFailed(thrown: unknown): Promise<void> | void;
}

/** A part as it goes to the worker. */
export type SentPart = Pick<InputPart, "number" | "events" | "release"> & Partial<Pick<InputPart, "controlEpoch">>;

/** Opens a call that takes parts, until the signal aborts. */
export type OpenInput = (
  streamId: string,
  parts: AsyncIterable<SentPart>,
  signal: AbortSignal,
) => AsyncIterable<InputProgress>;

interface Waiting extends SentPart {
  readonly sequence: number;
  readonly places: number;
}

/** One call to the worker. */
interface Turn {
  /** How many of the parts that wait it was given. */
  given: number;
  isIdle: boolean;
}

/**
 * The way of one person's input to the worker: a call that goes on while there is input. What comes is sent at once, and kept
 * until the worker says that it was taken, so that a call which breaks loses nothing: the next one sends it again, and the
 * worker knows by stream and number what it has taken.
 */
export class InputLine {
  readonly #open: OpenInput;
  readonly #listener: InputListener;
  readonly #over = new AbortController();
  /** What was not yet taken, in order. */
  readonly #waiting: Waiting[] = [];
  #places = 0;
  #streamId = randomUUID();
  /** Of the last part. */
  #number = 0;
  /** What became of the input of earlier streams. */
  #before = { accepted: 0, dropped: 0 };
  #taken: InputTaken = { sequence: 0, accepted: 0, dropped: 0 };
  #turn: Turn = { given: 0, isIdle: false };
  #running: Promise<void> | undefined;
  #room: PromiseWithResolvers<void> | undefined;
  #rest: PromiseWithResolvers<void> | undefined;
  #news: PromiseWithResolvers<void> | undefined;
  #usedAt: number | undefined;
  #isClosed = false;

  constructor(open: OpenInput, listener: InputListener) {
    this.#open = open;
    this.#listener = listener;
  }

  /** Sends input. A promise says that enough waits, and resolves when it does not. */
  send({ events, controlEpoch, sequence }: Input): Promise<void> | undefined {
    const epoch = controlEpoch === undefined ? {} : { controlEpoch };
    return this.#add({ events: [...events], release: false, ...epoch }, sequence);
  }

  /** Resolves when all that was sent was taken, or failed. */
  async drained(): Promise<void> {
    if (this.#waiting.length === 0) return;
    this.#rest ??= Promise.withResolvers();
    await this.#rest.promise;
  }

  /** Ends when all that was sent was taken, and what it holds down was released; gives up after some seconds. */
  async close(): Promise<void> {
    if (this.#usedAt !== undefined) void this.#add({ events: [], release: true }, this.#taken.sequence);
    this.#isClosed = true;
    this.#tellNews();
    await within(this.#running ?? Promise.resolve(), closeWithin, undefined);
    this.#over.abort();
  }

  #add(part: Omit<SentPart, "number">, sequence: number): Promise<void> | undefined {
    if (this.#isClosed) return undefined;
    this.#usedAt = performance.now();
    this.#number += 1;
    const places = placesOf(part.events);
    this.#waiting.push({ ...part, number: this.#number, sequence, places });
    this.#places += places;
    this.#tellNews();
    this.#running ??= this.#run();
    if (this.#places < most) return undefined;
    this.#room ??= Promise.withResolvers();
    return this.#room.promise;
  }

  async #run(): Promise<void> {
    for (let breaks = 0; this.#waiting.length > 0 && !this.#over.signal.aborted; ) {
      const turn = { given: 0, isIdle: false };
      this.#turn = turn;
      const idle = setInterval(() => this.#restIfIdle(turn), idleAfter);
      try {
        for await (const progress of this.#open(this.#streamId, this.#give(turn), this.#over.signal)) {
          breaks = 0;
          await this.#settle(progress);
        }
        if (turn.given > 0)
          throw fail("driver-error", { worker_lost: true }, { detail: "the worker broke off the input" });
      } catch (thrown) {
        const isBroken = asFailure(thrown).extensions.worker_lost === true;
        breaks += 1;
        if (!isBroken || breaks > mostBreaks) await this.#giveUp(thrown);
      } finally {
        clearInterval(idle);
      }
    }
    this.#running = undefined;
  }

  /** Gives a call what waits, and what comes; what an earlier call was given and did not settle as well. */
  async *#give(turn: Turn): AsyncGenerator<SentPart> {
    while (turn === this.#turn && !turn.isIdle) {
      const part = this.#waiting[turn.given];
      if (part) {
        turn.given += 1;
        yield part;
      } else if (this.#isClosed) return;
      else {
        this.#news ??= Promise.withResolvers();
        await this.#news.promise;
      }
    }
  }

  async #settle({ number, accepted, dropped }: InputProgress): Promise<void> {
    let { sequence } = this.#taken;
    for (let first = this.#waiting[0]; first && first.number <= number; first = this.#waiting[0]) {
      sequence = first.sequence;
      this.#drop(1);
    }
    const { accepted: before, dropped: droppedBefore } = this.#before;
    this.#taken = { sequence, accepted: before + accepted, dropped: droppedBefore + dropped };
    await this.#listener.onTaken(this.#taken);
    this.#tellRoom();
  }

  async #giveUp(thrown: unknown): Promise<void> {
    const failed = this.#waiting.length;
    this.#drop(failed);
    this.#renew();
    if (failed > 0) await this.#listener.onFailed(thrown);
    this.#tellRoom();
  }

  #drop(parts: number): void {
    const dropped = this.#waiting.splice(0, parts);
    // The worker may have taken of an earlier call what this one was not given yet.
    this.#turn.given = Math.max(0, this.#turn.given - dropped.length);
    for (const { places } of dropped) this.#places -= places;
  }

  #restIfIdle(turn: Turn): void {
    const isUsed = performance.now() - (this.#usedAt ?? 0) < idleAfter;
    if (isUsed || turn !== this.#turn || this.#waiting.length > 0) return;
    turn.isIdle = true;
    this.#renew();
    this.#tellNews();
  }

  /** What follows is a stream of its own: nothing of the one before is left to be told apart from it. */
  #renew(): void {
    this.#streamId = randomUUID();
    this.#number = 0;
    this.#before = this.#taken;
  }

  #tellNews(): void {
    this.#news?.resolve();
    this.#news = undefined;
  }

  #tellRoom(): void {
    if (this.#places < most) {
      this.#room?.resolve();
      this.#room = undefined;
    }
    if (this.#waiting.length === 0) {
      this.#rest?.resolve();
      this.#rest = undefined;
    }
  }
}

function placesOf(events: readonly InputEvent[]): number {
  const texts = events.map(({ event }) =>
    typeof event.value === "object" && "text" in event.value ? event.value.text.length : 0,
  );
  return 1 + events.length + Math.floor(texts.reduce((sum, length) => sum + length, 0) / charactersPerPlace);
}
