import type { CommandContext } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { within } from "../../src/platform/deadline.ts";
import { asFailure, type Failure, fail } from "../../src/platform/errors.ts";

/** Milliseconds to wait for effects of the previous holder's input, so that a hung page does not block control. */
const quietMs = 300;

export interface SessionControlOptions {
  /** Rejects queued commands with a failure. */
  drop(failure: Failure): void;
  /** Releases held keys and buttons. Resolves when the new holder's input may proceed. */
  release(): Promise<unknown>;
  /** Resolves when the pages have handled all input sent so far. */
  settled(): Promise<unknown>;
  /** Called when the control holder changes. */
  changed(): void;
}

/**
 * Control state of a session as known to its worker. The highest epoch received with any command applies, and decides
 * whose input reaches the page.
 */
export class SessionControl {
  readonly #options: SessionControlOptions;
  #epoch = 0n;
  #holder: string | undefined;
  #since = Date.now();
  #takeover = new AbortController();
  #quiet: Promise<unknown> = Promise.resolve();

  constructor(options: SessionControlOptions) {
    this.#options = options;
  }

  /** Client id of the person who holds control, or undefined. */
  get holder(): string | undefined {
    return this.#holder;
  }

  /** Control state for the API. Only gateways know whether an agent has control and when a lease expires. */
  get message() {
    const holder = this.#holder;
    const controlEpoch = Number(this.#epoch);
    return holder === undefined
      ? { state: "api", controlEpoch }
      : { state: "human_control", controlEpoch, holderClientId: holder };
  }

  /** Time of the last change of control, in milliseconds since the Unix epoch. */
  get since(): number {
    return this.#since;
  }

  /** Aborts with the failure for running commands when a person takes control. */
  get signal(): AbortSignal {
    return this.#takeover.signal;
  }

  /** Resolves when no input of an earlier epoch can reach a page any longer, or after 600 ms if a page hangs. */
  get quiet(): Promise<unknown> {
    return this.#quiet;
  }

  /** Returns whether a client holds control in an epoch. */
  isHeldBy(clientId: string, epoch = this.#epoch): boolean {
    return this.#holder === clientId && epoch === this.#epoch;
  }

  /**
   * Throws `conflict` if another person holds control, if the sending person does not hold control, or if control has
   * changed since the command was sent.
   */
  assertFree({ clientId, controlEpoch }: Pick<CommandContext, "controlEpoch" | "clientId">): void {
    const client = clientId || undefined;
    if (this.#holder !== undefined && this.#holder !== client) throw heldFailure(this.#holder);
    if (this.#holder !== client) throw fail("conflict", {}, { detail: "the client does not hold control" });
    if (controlEpoch < this.#epoch)
      throw fail("conflict", {}, { detail: "control has changed since the command was sent" });
  }

  /** Applies a newer control epoch: rejects commands if a person took control, and releases held input. */
  learn(context: Pick<CommandContext, "controlEpoch" | "holderClientId"> | undefined): void {
    if (!context || context.controlEpoch <= this.#epoch) return;
    this.#epoch = context.controlEpoch;
    this.#holder = context.holderClientId || undefined;
    this.#since = Date.now();
    const { drop, release, settled, changed } = this.#options;
    if (this.#holder !== undefined) {
      const failure = heldFailure(this.#holder);
      drop(failure);
      this.#takeover.abort(failure);
    }
    this.#takeover = new AbortController();
    changed();
    this.#quiet = within(settled(), quietMs, undefined).then(() => within(release(), quietMs, undefined));
  }
}

function heldFailure(holder: string): Failure {
  const detail = "a person holds control of the session: retry when control is released";
  return fail("conflict", { holder_client_id: holder }, { detail });
}

/** Returns whether a command was aborted because a person took control. */
export function isTakeover(thrown: unknown, signal: AbortSignal): boolean {
  return signal.aborted && thrown === signal.reason;
}

/** Creates the failure for an aborted command that may have reached the page. */
export function inDoubt({ reason }: AbortSignal): Failure {
  const { detail = "", extensions } = asFailure(reason);
  return fail("conflict", { ...extensions, in_doubt: true }, { detail });
}
