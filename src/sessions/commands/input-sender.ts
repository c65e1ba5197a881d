import { randomUUID } from "node:crypto";
import type { InputPart, InputProgress } from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { InputEvent } from "../../gen/pilothouse/v1/agent_input_pb.ts";
import { within } from "../../platform/deadline.ts";
import { asFailure, fail } from "../../platform/errors.ts";

/** Units of queued input at which `send` starts to return a promise. */
const max = 256;

/** Characters of text that count as one unit. Each part and each event also counts as one unit. */
const charactersPerUnit = 4_096;

/** Maximum consecutive broken calls without progress. */
const maxBreaks = 3;

/** Milliseconds without input after which the call to the worker ends. Also the interval of the checks. */
const idleAfter = 30_000;

/** Milliseconds for the last input to reach the worker when the sender is closed. */
const closeWithin = 2_000;

/** Input of a person, from one client message. */
export interface Input {
  readonly events: readonly InputEvent[];
  readonly controlEpoch?: bigint | undefined;
  /** Message number assigned by the client. */
  readonly sequence: number;
}

/** Progress of a client's input at the worker. */
export interface InputReceipt {
  /** `sequence` of the last message that the worker has processed completely. */
  readonly sequence: number;
  /** Events accepted for the page since the sender was created. */
  readonly accepted: number;
  /** Events dropped since the sender was created. */
  readonly dropped: number;
}

export interface InputListener {
  /** Reports progress. Further progress is processed after the returned promise resolves. */
  onReceipt(receipt: InputReceipt): Promise<void> | void;
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
  readonly units: number;
}

/** One call to the worker. */
interface WorkerCall {
  /** Number of queued parts sent in this call. */
  sent: number;
  isIdle: boolean;
}

/**
 * Sends one client's input to the worker, in a call that stays open while there is input. Parts are sent at once and
 * queued until the worker acknowledges them. If a call breaks, the next call sends the queued parts again; the worker
 * deduplicates parts by stream and number.
 */
export class InputSender {
  readonly #open: OpenInput;
  readonly #listener: InputListener;
  readonly #over = new AbortController();
  /** Unacknowledged parts, in order. */
  readonly #waiting: Waiting[] = [];
  #units = 0;
  #streamId = randomUUID();
  /** Number of the last part. */
  #number = 0;
  /** Totals of the earlier streams. */
  #before = { accepted: 0, dropped: 0 };
  #receipt: InputReceipt = { sequence: 0, accepted: 0, dropped: 0 };
  #call: WorkerCall = { sent: 0, isIdle: false };
  #running: Promise<void> | undefined;
  #room: PromiseWithResolvers<void> | undefined;
  #drained: PromiseWithResolvers<void> | undefined;
  #added: PromiseWithResolvers<void> | undefined;
  #usedAt: number | undefined;
  #isClosed = false;

  constructor(open: OpenInput, listener: InputListener) {
    this.#open = open;
    this.#listener = listener;
  }

  /** Sends input. If the queue is full, returns a promise that resolves when there is room. No effect after `close`. */
  send({ events, controlEpoch, sequence }: Input): Promise<void> | undefined {
    const epoch = controlEpoch === undefined ? {} : { controlEpoch };
    return this.#add({ events: [...events], release: false, ...epoch }, sequence);
  }

  /** Resolves when all queued input was acknowledged or discarded. */
  async drained(): Promise<void> {
    if (this.#waiting.length === 0) return;
    this.#drained ??= Promise.withResolvers();
    await this.#drained.promise;
  }

  /**
   * Sends the remaining input, and releases pressed keys and buttons. Resolves when the worker has acknowledged all
   * input, or after `closeWithin`.
   */
  async close(): Promise<void> {
    if (this.#usedAt !== undefined) void this.#add({ events: [], release: true }, this.#receipt.sequence);
    this.#isClosed = true;
    this.#notifyAdded();
    await within(this.#running ?? Promise.resolve(), closeWithin, undefined);
    this.#over.abort();
  }

  #add(part: Omit<SentPart, "number">, sequence: number): Promise<void> | undefined {
    if (this.#isClosed) return undefined;
    this.#usedAt = performance.now();
    this.#number += 1;
    const units = unitsOf(part.events);
    this.#waiting.push({ ...part, number: this.#number, sequence, units });
    this.#units += units;
    this.#notifyAdded();
    this.#running ??= this.#run();
    if (this.#units < max) return undefined;
    this.#room ??= Promise.withResolvers();
    return this.#room.promise;
  }

  async #run(): Promise<void> {
    for (let breaks = 0; this.#waiting.length > 0 && !this.#over.signal.aborted; ) {
      const call = { sent: 0, isIdle: false };
      this.#call = call;
      const idle = setInterval(() => this.#endIfIdle(call), idleAfter);
      try {
        for await (const progress of this.#open(this.#streamId, this.#partsFor(call), this.#over.signal)) {
          breaks = 0;
          await this.#settle(progress);
        }
        if (call.sent > 0)
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
  async *#partsFor(call: WorkerCall): AsyncGenerator<SentPart> {
    while (call === this.#call && !call.isIdle) {
      const part = this.#waiting[call.sent];
      if (part) {
        call.sent += 1;
        yield part;
      } else if (this.#isClosed) return;
      else {
        this.#added ??= Promise.withResolvers();
        await this.#added.promise;
      }
    }
  }

  async #settle({ number, accepted, dropped }: InputProgress): Promise<void> {
    let { sequence } = this.#receipt;
    for (let first = this.#waiting[0]; first && first.number <= number; first = this.#waiting[0]) {
      sequence = first.sequence;
      this.#drop(1);
    }
    const { accepted: before, dropped: droppedBefore } = this.#before;
    this.#receipt = { sequence, accepted: before + accepted, dropped: droppedBefore + dropped };
    await this.#listener.onReceipt(this.#receipt);
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
    this.#call.sent = Math.max(0, this.#call.sent - dropped.length);
    for (const { units } of dropped) this.#units -= units;
  }

  #endIfIdle(call: WorkerCall): void {
    const isUsed = performance.now() - (this.#usedAt ?? 0) < idleAfter;
    if (isUsed || call !== this.#call || this.#waiting.length > 0) return;
    call.isIdle = true;
    this.#renew();
    this.#notifyAdded();
  }

  /** Starts a new stream, so that the worker cannot confuse its parts with parts of the previous stream. */
  #renew(): void {
    this.#streamId = randomUUID();
    this.#number = 0;
    this.#before = this.#receipt;
  }

  #notifyAdded(): void {
    this.#added?.resolve();
    this.#added = undefined;
  }

  #notifyRoom(): void {
    if (this.#units < max) {
      this.#room?.resolve();
      this.#room = undefined;
    }
    if (this.#waiting.length === 0) {
      this.#drained?.resolve();
      this.#drained = undefined;
    }
  }
}

function unitsOf(events: readonly InputEvent[]): number {
  const texts = events.map(({ event }) =>
    typeof event.value === "object" && "text" in event.value ? event.value.text.length : 0,
  );
  return 1 + events.length + Math.floor(texts.reduce((sum, length) => sum + length, 0) / charactersPerUnit);
}
