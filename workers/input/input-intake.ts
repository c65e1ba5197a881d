import { create } from "@bufbuild/protobuf";
import {
  type CommandContext,
  type InputPart,
  type InputProgress,
  InputProgressSchema,
} from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import {
  InputDropReason,
  type InputEvent,
  type SendInputRequest,
  type SendInputResponse,
  SendInputResponseSchema,
} from "../../src/gen/pilothouse/v1/agent_input_pb.ts";
import { BoundedQueue } from "../../src/platform/bounded-queue.ts";
import { sleep } from "../../src/platform/bounded-wait.ts";
import { raceSignal } from "../../src/platform/deadline.ts";
import { fail } from "../../src/platform/errors.ts";
import type { WorkerInputQueue } from "./worker-input-queue.ts";

/**
 * Minimum milliseconds between two progress reports of a stream. A report costs as much CPU as a part of the input, and
 * gateways send up to 256 events before they need a report.
 */
const answerEvery = 10;

/**
 * Maximum number of streams for which progress is kept, so that they can continue after a connection has failed. A
 * session cannot have that many open streams.
 */
const maxStreams = 64;

interface Progress {
  /** Number of the last complete part. */
  number: number;
  /** Number of events of the next part that were accepted or dropped. */
  handledEvents: number;
  accepted: number;
  dropped: number;
}

export interface InputIntakeOptions {
  readonly inputQueue: Pick<WorkerInputQueue, "push" | "roomFreed" | "release">;
  readonly control: {
    /** Applies the control state from a command's context. */
    learn(context: CommandContext | undefined): void;
    /** Whether a client is in control. If an epoch is given, the epoch must also be the current control epoch. */
    isHeldBy(clientId: string, epoch?: bigint): boolean;
  };
  /** Aborts with a failure once the session has ended. */
  readonly ended: AbortSignal;
  /** Called when a client in control has sent input. */
  onInput(): void;
}

/** Receives input and queues the input of the client in control. */
export class InputIntake {
  readonly #options: InputIntakeOptions;
  /** Progress by stream name, most recent last. */
  readonly #streams = new Map<string, Progress>();

  constructor(options: InputIntakeOptions) {
    this.#options = options;
  }

  /**
   * Queues events while there is room, if the client is in control, and drops the others. Returns the numbers of
   * accepted and of dropped events.
   */
  take(context: CommandContext, { event, events: several, controlEpoch }: SendInputRequest): SendInputResponse {
    this.#options.control.learn(context);
    const events = event ? [event] : several;
    const epoch = controlEpoch === undefined ? undefined : BigInt(controlEpoch);
    const { accepted, reason } = this.#push(context.clientId, epoch, events);
    return create(SendInputResponseSchema, { accepted, dropped: events.length - accepted, reason });
  }

  /**
   * Queues the events of a stream as room becomes available and yields its progress. Parts that were already handled
   * are skipped.
   */
  async *follow(parts: AsyncIterable<InputPart>, disconnected: AbortSignal): AsyncGenerator<InputProgress> {
    const signal = AbortSignal.any([disconnected, this.#options.ended]);
    const answers = new BoundedQueue<InputProgress>({ items: 1 });
    signal.addEventListener("abort", () => answers.fail(signal.reason), { once: true });
    this.#takeAll(parts, signal, answers).then(
      () => answers.end(),
      (thrown: unknown) => answers.fail(thrown),
    );
    for await (const answer of answers) {
      yield answer;
      await sleep(answerEvery, signal);
    }
  }

  async #takeAll(
    parts: AsyncIterable<InputPart>,
    signal: AbortSignal,
    answers: BoundedQueue<InputProgress>,
  ): Promise<void> {
    let progress: Progress | undefined;
    let clientId = "";
    for await (const part of parts) {
      signal.throwIfAborted();
      if (!progress) {
        clientId = part.clientId;
        progress = this.#progressOf(part.streamId);
      }
      this.#options.control.learn(part.context);
      await this.#takePart(part, clientId, progress, signal);
      const { number, accepted, dropped } = progress;
      answers.pushDroppingOldest(create(InputProgressSchema, { number, accepted, dropped }));
    }
  }

  async #takePart(part: InputPart, clientId: string, progress: Progress, signal: AbortSignal): Promise<void> {
    const { number, events, controlEpoch, release } = part;
    // An earlier call with a failed connection may still handle the same part, so the progress is read after each wait.
    while (progress.number < number) {
      if (progress.number < number - 1)
        throw fail("internal", {}, { detail: `expected input part ${progress.number + 1}, got ${number}` });
      const { accepted, dropped } = this.#push(clientId, controlEpoch, events.slice(progress.handledEvents));
      progress.accepted += accepted;
      progress.dropped += dropped;
      progress.handledEvents += accepted + dropped;
      if (progress.handledEvents >= events.length) {
        progress.number = number;
        progress.handledEvents = 0;
        if (release && this.#options.control.isHeldBy(clientId)) this.#options.inputQueue.release();
      } else await raceSignal(this.#options.inputQueue.roomFreed, signal);
    }
  }

  /**
   * Queues events, or drops all events if the client is not in control. Events that are neither accepted nor dropped
   * did not fit into the queue.
   */
  #push(clientId: string, epoch: bigint | undefined, events: readonly InputEvent[]) {
    const { control, inputQueue, onInput } = this.#options;
    if (!control.isHeldBy(clientId, epoch)) {
      const reason = control.isHeldBy(clientId) ? InputDropReason.STALE_CONTROL : InputDropReason.NO_CONTROL;
      return { accepted: 0, dropped: events.length, reason };
    }
    onInput();
    const pushed = inputQueue.push(events);
    // The queue drops only viewport events and unknown events.
    return { ...pushed, ...(pushed.dropped > 0 && { reason: InputDropReason.VIEWPORT_FIXED }) };
  }

  #progressOf(streamId: string): Progress {
    const progress = this.#streams.get(streamId) ?? { number: 0, handledEvents: 0, accepted: 0, dropped: 0 };
    this.#streams.delete(streamId);
    this.#streams.set(streamId, progress);
    for (const oldest of this.#streams.keys()) {
      if (this.#streams.size <= maxStreams) break;
      this.#streams.delete(oldest);
    }
    return progress;
  }
}
