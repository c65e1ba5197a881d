import { setImmediate } from "node:timers/promises";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { CommandContext, LendRequest } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { Event } from "../../src/gen/pilothouse/v1/common_pb.ts";
import type { JoinResponse, LiveAnswer } from "../../src/gen/pilothouse/v1/live_pb.ts";
import {
  type CdpResponse,
  type OnChallenge,
  SessionEndedReason,
  type SessionState,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { raceSignal } from "../../src/platform/deadline.ts";
import { type Failure, fail } from "../../src/platform/errors.ts";
import type { Happening } from "../base/reports.ts";
import type { KeptFile, SessionFiles } from "../files/session-files.ts";
import { InputIntake } from "../input/input-intake.ts";
import { InputLane } from "../input/input-lane.ts";
import { inputOf, releaseAll } from "../input/page-input.ts";
import type { Arrival } from "../live/live-desk.ts";
import type { SessionBrowser } from "../pool/session-browser.ts";
import { VariableBook } from "../variables/variable-book.ts";
import { ChallengePause } from "./challenge-pause.ts";
import { CommandQueue } from "./command-queue.ts";
import { endedFailure } from "./ended-reason.ts";
import { IdleClock } from "./idle-clock.ts";
import { SessionCommands } from "./session-commands.ts";
import { SessionControl } from "./session-control.ts";
import { describeSession } from "./session-state.ts";

/** How a session ends by itself or is ended. */
export interface SessionEnd {
  readonly reason: SessionEndedReason;
  readonly detail: string;
}

export interface SessionOptions {
  readonly id: string;
  readonly placementEpoch: bigint;
  readonly browser: SessionBrowser;
  /** How long it may last at the most. */
  readonly lifetimeMs: number;
  readonly idleTimeoutMs: number;
  /** Refusals of addresses say how the operator lets them through. */
  readonly showRemedy: boolean;
  /** What a bot check does to the session. */
  readonly onChallenge: OnChallenge;
  /** Hears of bot checks. */
  onEvent(event: Happening): void;
  /** Hears once that the session has ended by itself. */
  onEnded(end: SessionEnd): void;
}

/** One browser that clients drive and watch: who steers it, its clocks, and its end. */
export class Session {
  readonly id: string;
  readonly placementEpoch: bigint;
  /** What clients have it do. */
  readonly commands: SessionCommands;
  /** What people do to its pages. */
  readonly input: InputIntake;
  readonly #options: SessionOptions;
  readonly #browser: SessionBrowser;
  readonly #queue = new CommandQueue();
  readonly #idleClock: IdleClock;
  readonly #pause: ChallengePause;
  readonly #expiry: NodeJS.Timeout;
  readonly #ended = new AbortController();
  readonly #lane: InputLane;
  readonly #control: SessionControl;
  readonly #variables = new VariableBook();

  constructor(options: SessionOptions) {
    this.id = options.id;
    this.placementEpoch = options.placementEpoch;
    this.#options = options;
    this.#browser = options.browser;
    this.#idleClock = new IdleClock(options.idleTimeoutMs, () =>
      this.#endByItself(SessionEndedReason.IDLE, "no command came for the idle time"),
    );
    this.#expiry = setTimeout(
      () => this.#endByItself(SessionEndedReason.EXPIRED, "its time was up"),
      options.lifetimeMs,
    );
    const { onChallenge } = options;
    const onEvent = (event: Happening): void => {
      this.#browser.liveDesk.changed();
      options.onEvent(this.#variables.mask(event));
    };
    this.#pause = new ChallengePause({ onChallenge, queue: this.#queue, idleClock: this.#idleClock, onEvent });
    this.#browser.challengeWatch.listen(this.#pause);
    this.#lane = new InputLane(
      () => inputOf(this.#browser.pages.active.cdp),
      () => this.#lookForLists(),
    );
    this.#control = new SessionControl({
      drop: (failure) => this.#queue.drop(failure),
      release: () => this.#releaseAll(),
      settled: () => this.#settled(),
      changed: () => {
        this.#browser.questionDesk.hold(this.#control.holder);
        this.#browser.liveDesk.changed();
      },
    });
    this.input = new InputIntake({
      ...{ lane: this.#lane, control: this.#control, ended: this.#ended.signal },
      onInput: () => this.#idleClock.touch(),
    });
    this.commands = new SessionCommands({
      ...{ browser: this.#browser, queue: this.#queue, idleClock: this.#idleClock, pause: this.#pause },
      ...{ control: this.#control, ended: this.#ended.signal, showRemedy: options.showRemedy },
      variables: this.#variables,
    });
    this.#browser.lost.then((detail) => this.#endByItself(SessionEndedReason.CRASHED, detail));
  }

  /** How many commands wait for their turn. */
  get queued(): number {
    return this.#queue.length;
  }

  /** Reads what the session shows, whatever its page does. */
  async state(context: CommandContext): Promise<SessionState> {
    this.#ended.signal.throwIfAborted();
    this.#variables.learn(context.variables);
    const described = describeSession(this.#browser, this.#pause, this.#control);
    return this.#variables.mask(await raceSignal(described, this.#ended.signal));
  }

  /** The session's files, for the API or for the person who holds control. Using them is use of the session, and ends with it. */
  useFiles(
    context: CommandContext,
    caller: AbortSignal,
  ): { readonly files: SessionFiles; readonly signal: AbortSignal } & Disposable {
    const signal = AbortSignal.any([caller, this.#ended.signal]);
    signal.throwIfAborted();
    const uses = new DisposableStack();
    if (context.clientId !== "") {
      this.#control.learn(context);
      this.#control.assertFree(context);
      uses.use(this.#browser.questionDesk.wait());
    }
    uses.use(this.#idleClock.activity());
    return { files: this.#browser.files, signal, [Symbol.dispose]: () => uses.dispose() };
  }

  /** All files of the session, those that changed last first. */
  get files(): readonly KeptFile[] {
    return this.#browser.files.all;
  }

  /** Gives what happens in the browser from now on. */
  async *watch(signal: AbortSignal): AsyncIterable<Event> {
    for await (const event of this.#browser.feed.read(this.id, signal)) yield this.#variables.mask(event);
  }

  /** Lends the browser to a client that speaks the DevTools protocol, until it leaves. */
  lend(requests: AsyncIterable<LendRequest>, signal: AbortSignal): AsyncIterable<CdpResponse> {
    return this.#browser.lendDesk.lend(
      requests,
      { isHeld: () => this.#control.holder !== undefined, onCommand: () => this.#idleClock.touch() },
      signal,
    );
  }

  /** Shows the session to a viewer, until it leaves. */
  view(arrival: Arrival): AsyncIterable<JoinResponse> {
    if (this.#ended.signal.aborted) throw this.#ended.signal.reason;
    return this.#browser.liveDesk.view(arrival, {
      id: this.id,
      describe: () => {
        const { status, reason } = this.#pause;
        const { message: control, since } = this.#control;
        const pauseReason = reason === undefined ? {} : { pauseReason: reason };
        const { questionDesk, downloadShelf } = this.#browser;
        const asked = { questions: [...questionDesk.open], downloads: downloadShelf.offeredTo(this.#control.holder) };
        return { status, ...pauseReason, control, controlChangedAt: timestampFromMs(since), ...asked };
      },
      activity: () => this.#idleClock.activity(),
    });
  }

  /** Answers what a page asks, for the person who holds control. */
  async answer(context: CommandContext, answer: LiveAnswer): Promise<void> {
    this.#control.learn(context);
    this.#control.assertFree(context);
    this.#idleClock.touch();
    await this.#browser.questionDesk.answer(answer);
  }

  /** Takes note of who holds control; resolves when nothing of who held it before reaches a page any more. */
  async setControl(context: CommandContext): Promise<void> {
    this.#control.learn(context);
    await this.#control.quiet;
  }

  /** Ends the session: what runs and what waits fails at once, and resolves when nothing is left of the browser. */
  async end(reason: SessionEndedReason): Promise<void> {
    this.#close(endedFailure(reason), endedFailure(reason));
    // Behind the answer of a destroy: to begin with the teardown holds the worker for some 20 ms.
    await setImmediate();
    await this.#browser.dispose();
  }

  #endByItself(reason: SessionEndedReason, detail: string): void {
    if (this.#ended.signal.aborted) return;
    const isCrash = reason === SessionEndedReason.CRASHED;
    const running = isCrash ? fail("driver-error", { target_closed: true }, { detail }) : endedFailure(reason);
    this.#close(running, endedFailure(reason));
    this.#options.onEnded({ reason, detail });
  }

  #close(running: Failure, waiting: Failure): void {
    if (this.#ended.signal.aborted) return;
    this.#idleClock.stop();
    clearTimeout(this.#expiry);
    this.#queue.close(waiting);
    this.#ended.abort(running);
    this.#browser.questionDesk.hold(undefined);
    this.#browser.lendDesk.close();
    this.#browser.liveDesk.close(waiting);
    this.#browser.feed.close();
    this.#browser.challengeWatch.close();
  }

  #lookForLists(): void {
    const { selectDesk, pages } = this.#browser;
    if (pages.shown) selectDesk.touched(pages.shown);
  }

  async #releaseAll(): Promise<void> {
    this.#lane.clear();
    for (const { cdp } of this.#browser.pages.all) releaseAll(inputOf(cdp));
    await this.#browser.lendDesk.resume();
  }

  /** Resolves when what commands, people and CDP clients have sent to the pages was handled. */
  #settled(): Promise<unknown> {
    const sent = this.#browser.pages.all.map(({ cdp }) => inputOf(cdp).tally.settled());
    return Promise.all([...sent, this.#browser.lendDesk.giveWay()]);
  }
}
