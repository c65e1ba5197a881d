import type { InputEvent, StreamInputRequest } from "../gen/pilothouse/v1/agent_input_pb.ts";

/** What may wait while other input is on its way to the worker, in events and messages: beyond, the stream is held. */
const most = 256;

/** Input that goes to the worker at once: that of one message, or of several. */
export interface InputBatch {
  readonly events: InputEvent[];
  readonly controlEpoch: number | undefined;
  /** That of the last message. */
  sequence: number;
}

/** The way of a stream's input to the worker: what comes while some is on its way follows together, in order. */
export class InputPipe {
  readonly #send: (batch: InputBatch) => Promise<void>;
  readonly #waiting: InputBatch[] = [];
  #running: Promise<void> | undefined;

  /** `send` never fails. */
  constructor(send: (batch: InputBatch) => Promise<void>) {
    this.#send = send;
  }

  /** Takes a message; resolves when the next one may come. */
  async push({ events, controlEpoch, sequence }: StreamInputRequest): Promise<void> {
    const last = this.#waiting.at(-1);
    if (last && last.controlEpoch === controlEpoch) {
      last.events.push(...events);
      last.sequence = sequence;
    } else this.#waiting.push({ events: [...events], controlEpoch, sequence });
    this.#running ??= this.#run();
    const size = this.#waiting.reduce((sum, batch) => sum + 1 + batch.events.length, 0);
    if (size >= most) await this.#running;
  }

  /** Resolves when all that was taken has been sent. */
  async drained(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) await this.#send(next);
    this.#running = undefined;
  }
}
