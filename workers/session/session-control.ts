import type { CommandContext } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { within } from "../../src/platform/deadline.ts";
import { asFailure, type Failure, fail } from "../../src/platform/errors.ts";

/** How long what an earlier holder has set going may take to end. It is abandoned then: a page that hangs holds up nobody. */
const quietMs = 300;

export interface SessionControlOptions {
  /** Drops what waits, with what it answers. */
  drop(failure: Failure): void;
  /** Releases what is held; resolves when that is done, and whoever steers now may go on. */
  release(): Promise<unknown>;
  /** Resolves when nothing that was sent to a page by now is left to be handled. */
  settled(): Promise<unknown>;
  /** Hears that somebody else steers. */
  changed(): void;
}

/**
 * Who steers a session, as far as its worker has heard: the newest epoch counts, by whatever command it is told. Nothing
 * else decides whose input reaches the page.
 */
export class SessionControl {
  readonly #options: SessionControlOptions;
  #epoch = 0n;
  #holder: string | undefined;
  #since = Date.now();
  #cut = new AbortController();
  #quiet: Promise<unknown> = Promise.resolve();

  constructor(options: SessionControlOptions) {
    this.#options = options;
  }

  /** The client of the person who holds control; undefined while none does. */
  get holder(): string | undefined {
    return this.#holder;
  }

  /** Who steers as the interface has it; whether an agent does, and until when a person may, only gateways know. */
  get message() {
    const holder = this.#holder;
    const controlEpoch = Number(this.#epoch);
    return holder === undefined
      ? { state: "api", controlEpoch }
      : { state: "human_control", controlEpoch, holderClientId: holder };
  }

  /** Since when they steer who do, in milliseconds since the Unix epoch. */
  get since(): number {
    return this.#since;
  }

  /** Aborts, with what a command is answered then, when a person takes control. */
  get signal(): AbortSignal {
    return this.#cut.signal;
  }

  /** Resolves when nothing of an earlier epoch reaches a page any more. */
  get quiet(): Promise<unknown> {
    return this.#quiet;
  }

  /** Whether a client's input is to reach the page. */
  isHeldBy(clientId: string, epoch = this.#epoch): boolean {
    return this.#holder === clientId && epoch === this.#epoch;
  }

  /**
   * Throws what a command is answered while another person holds control, or when one has held it since it was sent; and
   * what a person's is answered who does not hold it.
   */
  assertFree(context: Pick<CommandContext, "controlEpoch" | "clientId"> | undefined): void {
    const client = context?.clientId || undefined;
    if (this.#holder !== undefined && this.#holder !== client) throw heldFailure(this.#holder);
    if (this.#holder !== client) throw fail("conflict", {}, { detail: "the client does not hold control" });
    if ((context?.controlEpoch ?? 0n) < this.#epoch)
      throw fail("conflict", {}, { detail: "control has changed since the command was sent" });
  }

  /** Takes note of what a command says of control, if that is news: what runs and waits is cut, what is held is released. */
  learn(context: Pick<CommandContext, "controlEpoch" | "holderClientId"> | undefined): void {
    if (!context || context.controlEpoch <= this.#epoch) return;
    this.#epoch = context.controlEpoch;
    this.#holder = context.holderClientId || undefined;
    this.#since = Date.now();
    const { drop, release, settled, changed } = this.#options;
    if (this.#holder !== undefined) {
      const failure = heldFailure(this.#holder);
      drop(failure);
      this.#cut.abort(failure);
    }
    this.#cut = new AbortController();
    changed();
    this.#quiet = within(settled(), quietMs, undefined).then(() => within(release(), quietMs, undefined));
  }
}

function heldFailure(holder: string): Failure {
  const detail = "a person holds control of the session: it takes commands again when control is given back";
  return fail("conflict", { holder_client_id: holder }, { detail });
}

/** Whether a command was cut because a person has taken control. */
export function isCut(thrown: unknown, signal: AbortSignal): boolean {
  return signal.aborted && thrown === signal.reason;
}

/** What a command answers that had reached the page when it was cut. */
export function inDoubt({ reason }: AbortSignal): Failure {
  const { detail = "", extensions } = asFailure(reason);
  return fail("conflict", { ...extensions, in_doubt: true }, { detail });
}
