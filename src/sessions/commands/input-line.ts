import { randomUUID } from "node:crypto";
import type { InputPart, InputProgress } from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { InputEvent } from "../../gen/pilothouse/v1/agent_input_pb.ts";
import { within } from "../../platform/deadline.ts";
import { asFailure, fail } from "../../platform/errors.ts";

/** Maximum units of input queued for the worker. Beyond this, the sender must wait. */
const max = 256;

/** Characters of text that count as one unit. Each part and each event also counts as one unit. */
const charactersPerPlace = 4_096;

/** Maximum consecutive broken calls without progress. */
const maxBreaks = 3;

/** Idle milliseconds after which a line ends its call to the worker. */
const idleAfter = 30_000;

/** Milliseconds for the last input of a line to reach the worker. */
const closeWithin = 2_000;

/** Input of a person, from one client message. */
export interface Input {
  readonly events: readonly InputEvent[];
  readonly controlEpoch?: bigint | undefined;
  /** Message number assigned by the client. */
  readonly sequence: number;
}

/** Progress of a line's input. */
export interface InputTaken {
  /** `sequence` of the last message that the worker has taken completely. */
  readonly sequence: number;
  /** Events accepted for the page since the line was opened. */
  readonly accepted: number;
  /** Events dropped since the line was opened. */
  readonly dropped: number;
}

export interface InputListener {
  /** Reports progress. Further input is processed after the returned promise resolves. */
  onTaken(taken: InputTaken): Promise<void> | void;
  /** Reports why the queued input was discarded. Later input starts a new stream. */
  onFailed(thrown: unknown): Promise<void> | void;
}

/** A part as sent to the worker. */
export type SentPart = Pick<InputPart, "number" | "events" | "release"> & Partial<Pick<InputPart, "controlEpoch">>;

/** Opens a call that sends parts, until the signal aborts. */
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
  /** Number of queued parts sent in this call. */
  given: number;
  isIdle: boolean;
}

/**
 * Sends one client's input to the worker, in a call that stays open while there is input. Parts are sent at once and
 * queued until the worker acknowledges them. If a call breaks, the next call sends them again; the worker deduplicates
 * them by stream and number.
 */
export class InputLine {
  readonly #open: OpenInput;
  readonly #listener: InputListener;
  readonly #over = new AbortController();
  /** Unacknowledged parts, in order. */
  readonly #waiting: Waiting[] = [];
  #places = 0;
  #streamId = randomUUID();
  /** Number of the last part. */
  #number = 0;
  /** Totals of the earlier streams. */
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

  /** Sends input. Returns a promise if the queue is full; it resolves when there is room. */
  send({ events, controlEpoch, sequence }: Input): Promise<void> | undefined {
    const epoch = controlEpoch === undefined ? {} : { controlEpoch };
    return this.#add({ events: [...events], release: false, ...epoch }, sequence);
  }

  /** Resolves when all input was taken or failed. */
  async drained(): Promise<void> {
    if (this.#waiting.length === 0) return;
    this.#rest ??= Promise.withResolvers();
    await this.#rest.promise;
  }

  /**
   * Sends the remaining input, and releases pressed keys and buttons. Resolves when the worker has taken everything, or
   * after `closeWithin`.
   */
  async close(): Promise<void> {
    if (this.#usedAt !== undefined) void this.#add({ events: [], release: true }, this.#taken.sequence);
    this.#isClosed = true;
    this.#notifyNews();
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
    this.#notifyNews();
    this.#running ??= this.#run();
    if (this.#places < max) return undefined;
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
          throw fail("driver-error", { worker_lost: true }, { detail: "the worker ended the input stream" });
      } catch (thrown) {
        const isBroken = asFailure(thrown).extensions.worker_lost === true;
        breaks += 1;
        if (!isBroken || breaks > maxBreaks) await this.#giveUp(thrown);
      } finally {
        clearInterval(idle);
      }
    }
    this.#running = undefined;
  }

  /** Yields queued and new parts to a call, including unacknowledged parts of an earlier call. */
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
    this.#notifyRoom();
  }

  async #giveUp(thrown: unknown): Promise<void> {
    const failed = this.#waiting.length;
    this.#drop(failed);
    this.#renew();
    if (failed > 0) await this.#listener.onFailed(thrown);
    this.#notifyRoom();
  }

  #drop(parts: number): void {
    const dropped = this.#waiting.splice(0, parts);
    // The worker may acknowledge parts from an earlier call that this call has not sent yet.
    this.#turn.given = Math.max(0, this.#turn.given - dropped.length);
    for (const { places } of dropped) this.#places -= places;
  }

  #restIfIdle(turn: Turn): void {
    const isUsed = performance.now() - (this.#usedAt ?? 0) < idleAfter;
    if (isUsed || turn !== this.#turn || this.#waiting.length > 0) return;
    turn.isIdle = true;
    this.#renew();
    this.#notifyNews();
  }

  /** Starts a new stream, so that the worker cannot confuse its parts with parts of the previous stream. */
  #renew(): void {
    this.#streamId = randomUUID();
    this.#number = 0;
    this.#before = this.#taken;
  }

  #notifyNews(): void {
    this.#news?.resolve();
    this.#news = undefined;
  }

  #notifyRoom(): void {
    if (this.#places < max) {
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
