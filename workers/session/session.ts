import { setImmediate } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type CommandContext,
  type ProxyCdpRequest,
  type SessionLogPage,
  SessionLogPageSchema,
  type StateRequest,
  type TimeoutsRequest,
} from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { Event } from "../../src/gen/pilothouse/v1/common_pb.ts";
import type { JoinResponse, LiveAnswer } from "../../src/gen/pilothouse/v1/live_pb.ts";
import { type SessionLogEntry, SessionLogLevel } from "../../src/gen/pilothouse/v1/session_log_pb.ts";
import {
  type CdpResponse,
  type OnChallenge,
  SessionEndedReason,
  type SessionState,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { raceSignal } from "../../src/platform/deadline.ts";
import { type Failure, fail } from "../../src/platform/errors.ts";
import type { ReportedEvent } from "../base/reports.ts";
import type { KeptFile, SessionFiles } from "../files/session-files.ts";
import { InputIntake } from "../input/input-intake.ts";
import { inputOf, releaseAll } from "../input/page-input.ts";
import { WorkerInputQueue } from "../input/worker-input-queue.ts";
import type { JoiningViewer } from "../live/live-hub.ts";
import type { SessionBrowser } from "../pool/session-browser.ts";
import { VariableStore } from "../variables/variable-store.ts";
import { ChallengePause } from "./challenge-pause.ts";
import { SessionControl } from "./client-control.ts";
import { CommandQueue } from "./command-queue.ts";
import { CommandRunner } from "./command-runner.ts";
import { endedFailure } from "./ended-reason.ts";
import { EndingNotice } from "./ending-notice.ts";
import { IdleClock } from "./idle-clock.ts";
import { describeSession } from "./session-state.ts";
import { ThumbnailFeed } from "./thumbnail-feed.ts";

export interface SessionEnd {
  readonly reason: SessionEndedReason;
  readonly detail: string;
}

export interface SessionOptions {
  readonly id: string;
  readonly placementEpoch: bigint;
  readonly browser: SessionBrowser;
  readonly lifetimeMs: number;
  readonly idleTimeoutMs: number;
  /**
   * Whether the session ends after its last CDP client: at once if the client is done, else if none reconnects within
   * 30 s.
   */
  readonly endsWithClients: boolean;
  /** Whether errors for refused addresses name the setting that allows the address. */
  readonly showRemedy: boolean;
  /** Reaction to bot checks. */
  readonly onChallenge: OnChallenge;
  /** Called when a bot check appears or disappears. */
  onEvent(event: ReportedEvent): void;
  /** Called once if the session ends without a call of `end`. */
  onEnded(end: SessionEnd): void;
}

/** Milliseconds without a CDP client after which a session with `endsWithClients` ends. */
const withoutClientsMs = 30_000;

/** A session: one browser with its control state, timers and end. */
export class Session {
  readonly id: string;
  readonly placementEpoch: bigint;
  readonly commands: CommandRunner;
  /** Input that people send. */
  readonly input: InputIntake;
  /** Small pictures of the active page. */
  readonly thumbnails: ThumbnailFeed;
  readonly #options: SessionOptions;
  readonly #browser: SessionBrowser;
  readonly #queue = new CommandQueue();
  readonly #idleClock: IdleClock;
  /** Runs while no CDP client is connected; undefined if the session does not end with its clients. */
  readonly #reconnectClock: IdleClock | undefined;
  readonly #pause: ChallengePause;
  #expiry: NodeJS.Timeout;
  readonly #endingNotice: EndingNotice;
  /** Number of the last change of timeouts. */
  #timeoutsNumber = 0;
  readonly #ended = new AbortController();
  readonly #inputQueue: WorkerInputQueue;
  readonly #control: SessionControl;
  readonly #variables = new VariableStore();

  constructor(options: SessionOptions) {
    this.id = options.id;
    this.placementEpoch = options.placementEpoch;
    this.#options = options;
    this.#browser = options.browser;
    this.#idleClock = new IdleClock(options.idleTimeoutMs, () =>
      this.#endSpontaneously(SessionEndedReason.IDLE, "no command was received within the idle timeout"),
    );
    this.#endingNotice = new EndingNotice(this.#browser.feed);
    this.#expiry = this.#expireAfter(options.lifetimeMs);
    this.#reconnectClock = options.endsWithClients
      ? new IdleClock(withoutClientsMs, () => this.#endAfterClients("its last client did not reconnect"))
      : undefined;
    const { onChallenge } = options;
    const onEvent = (event: ReportedEvent): void => {
      this.#browser.liveHub.changed();
      options.onEvent(this.#variables.mask(event));
    };
    this.#pause = new ChallengePause({ onChallenge, queue: this.#queue, idleClock: this.#idleClock, onEvent });
    this.#browser.challengeWatch.listen(this.#pause);
    this.#inputQueue = new WorkerInputQueue(
      () => inputOf(this.#browser.pages.active.cdp),
      () => this.#checkSelectPopups(),
    );
    this.#control = new SessionControl({
      drop: (failure) => this.#queue.drop(failure),
      release: () => this.#releaseAll(),
      settled: () => this.#settled(),
      changed: () => {
        this.#browser.pendingQuestions.setHolder(this.#control.holder);
        this.#browser.liveHub.changed();
      },
    });
    this.input = new InputIntake({
      inputQueue: this.#inputQueue,
      control: this.#control,
      ended: this.#ended.signal,
      onInput: () => this.#idleClock.touch(),
    });
    this.commands = new CommandRunner({
      browser: this.#browser,
      queue: this.#queue,
      idleClock: this.#idleClock,
      pause: this.#pause,
      control: this.#control,
      ended: this.#ended.signal,
      showRemedy: options.showRemedy,
      variables: this.#variables,
    });
    this.thumbnails = new ThumbnailFeed({
      id: this.id,
      pages: this.#browser.pages,
      take: () => this.commands.thumbnail(),
    });
    this.#browser.lost.then((detail) => this.#endSpontaneously(SessionEndedReason.CRASHED, detail));
  }

  /** Number of queued commands of the session. */
  get queued(): number {
    return this.#queue.length;
  }

  /** Resolves with the session's state, even if its page hangs. */
  async state(context: CommandContext, { brief: isBrief }: StateRequest): Promise<SessionState> {
    this.#ended.signal.throwIfAborted();
    this.#variables.add(context.variables);
    const described = describeSession(this.#browser, this.#pause, this.#control, isBrief);
    return this.#variables.mask(await raceSignal(described, this.#ended.signal));
  }

  /**
   * Returns the session's files for the API or the control holder. Throws `conflict` for a person who does not hold
   * control. Counts as activity until disposed of.
   */
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
      uses.use(this.#browser.pendingQuestions.pauseTimeouts());
    }
    uses.use(this.#idleClock.activity());
    return { files: this.#browser.files, signal, [Symbol.dispose]: () => uses.dispose() };
  }

  /** All files of the session, most recently changed first. */
  get files(): readonly KeptFile[] {
    return this.#browser.files.all;
  }

  /** Yields events of the browser from now on, until the session ends or the signal aborts. */
  async *watch(signal: AbortSignal): AsyncIterable<Event> {
    for await (const event of this.#browser.feed.read(this.id, signal)) yield this.#variables.mask(event);
  }

  /** Whether the session has a log. */
  get isLogged(): boolean {
    return this.#browser.log.level >= SessionLogLevel.ERRORS;
  }

  /** Returns at most `limit` log entries with a number above `after`. Also works after the session has ended. */
  readLog(after: number, limit?: number): SessionLogPage {
    const { log } = this.#browser;
    // Masked when read, so that values learned after an entry are masked, too.
    return this.#variables.mask(
      create(SessionLogPageSchema, { entries: log.read(after, limit), dropped: log.dropped }),
    );
  }

  /** Yields log entries with a number above `after`, until the session has ended or the signal aborts. */
  async *followLog(after: number, signal: AbortSignal): AsyncIterable<SessionLogEntry> {
    for await (const entry of this.#browser.log.follow(after, signal)) yield this.#variables.mask(entry);
  }

  /** Serves a CDP client until it disconnects. */
  proxyCdp(requests: AsyncIterable<ProxyCdpRequest>, signal: AbortSignal): AsyncIterable<CdpResponse> {
    const session = { isHeld: () => this.#control.holder !== undefined, onCommand: () => this.#idleClock.touch() };
    const serve = (received: AsyncIterable<ProxyCdpRequest>) =>
      this.#browser.cdpProxy.proxyCdp(received, session, signal);
    return this.#reconnectClock ? this.#serveUntilDone(this.#reconnectClock, requests, serve, signal) : serve(requests);
  }

  /**
   * Serves a CDP client. Ends the session if the last client closes its connection and is done with the session. The
   * client counts until it is disconnected, not until its settings are removed, because a hung page delays the removal.
   */
  async *#serveUntilDone(
    clock: IdleClock,
    requests: AsyncIterable<ProxyCdpRequest>,
    serve: (received: AsyncIterable<ProxyCdpRequest>) => AsyncIterable<CdpResponse>,
    signal: AbortSignal,
  ): AsyncGenerator<CdpResponse> {
    let isDone = false;
    async function* received(): AsyncGenerator<ProxyCdpRequest> {
      for await (const request of requests) {
        isDone ||= request.done;
        yield request;
      }
    }
    using connection = new DisposableStack();
    connection.defer(() => {
      if (isDone && clock.isIdle) this.#endAfterClients("its last client closed the connection");
    });
    connection.use(clock.activity());
    signal.addEventListener("abort", () => connection.dispose(), { once: true });
    for await (const response of serve(received())) {
      isDone ||= response.closed === "browser_closed";
      yield response;
      if (response.closed !== "") connection.dispose();
    }
  }

  /** Serves a live viewer until it disconnects. */
  view(joining: JoiningViewer): AsyncIterable<JoinResponse> {
    if (this.#ended.signal.aborted) throw this.#ended.signal.reason;
    return this.#browser.liveHub.view(joining, {
      id: this.id,
      describe: () => {
        const { status, reason } = this.#pause;
        const { message: control, since } = this.#control;
        const pauseReason = reason === undefined ? {} : { pauseReason: reason };
        const { pendingQuestions, downloadStore } = this.#browser;
        const pending = {
          questions: [...pendingQuestions.open],
          downloads: downloadStore.offeredTo(this.#control.holder),
        };
        return { status, ...pauseReason, control, controlChangedAt: timestampFromMs(since), ...pending };
      },
      activity: () => this.#idleClock.activity(),
    });
  }

  /** Sends the session's frames to a gateway until it ends the requests. */
  frames(requests: JoiningViewer["requests"]): AsyncIterable<JoinResponse> {
    if (this.#ended.signal.aborted) throw this.#ended.signal.reason;
    return this.#browser.liveHub.frames(requests);
  }

  /** Answers a question of the page, for the client that holds control. */
  async answer(context: CommandContext, answer: LiveAnswer): Promise<void> {
    this.#control.learn(context);
    this.#control.assertFree(context);
    this.#idleClock.touch();
    await this.#browser.pendingQuestions.answer(answer);
  }

  /**
   * Applies a change of control. Resolves when no input of the previous holder can reach a page any longer, or after
   * 600 ms if a page hangs.
   */
  async setControl(context: CommandContext): Promise<void> {
    this.#control.learn(context);
    await this.#control.quiet;
  }

  /** Changes timeouts, unless this change or a later change has already been applied. */
  setTimeouts({ number, remainingMs, idleTimeoutSeconds }: TimeoutsRequest): void {
    this.#ended.signal.throwIfAborted();
    if (number <= this.#timeoutsNumber) return;
    this.#timeoutsNumber = number;
    if (idleTimeoutSeconds !== undefined) this.#idleClock.set(idleTimeoutSeconds * 1_000);
    if (remainingMs === undefined) return;
    clearTimeout(this.#expiry);
    this.#expiry = this.#expireAfter(remainingMs);
  }

  /** Plans the notice that the worker ends the session in `remainingMs` milliseconds because the worker drains. */
  planDrainEnd(remainingMs: number): void {
    this.#endingNotice.plan(SessionEndedReason.WORKER_DRAINED, remainingMs);
  }

  /** Ends the session. Running and queued commands fail immediately. Resolves when the browser is disposed of. */
  async end(reason: SessionEndedReason): Promise<void> {
    this.#close(endedFailure(reason), endedFailure(reason));
    // Lets the response to a destroy be sent first, because the teardown blocks the worker for 20 ms.
    await setImmediate();
    await this.#browser.dispose();
  }

  #expireAfter(milliseconds: number): NodeJS.Timeout {
    this.#endingNotice.plan(SessionEndedReason.EXPIRED, milliseconds);
    return setTimeout(
      () => this.#endSpontaneously(SessionEndedReason.EXPIRED, "its lifetime has expired"),
      milliseconds,
    );
  }

  #endAfterClients(detail: string): void {
    this.#endSpontaneously(SessionEndedReason.DESTROYED, detail);
  }

  #endSpontaneously(reason: SessionEndedReason, detail: string): void {
    if (this.#ended.signal.aborted) return;
    const isCrash = reason === SessionEndedReason.CRASHED;
    const running = isCrash ? fail("driver-error", { target_closed: true }, { detail }) : endedFailure(reason);
    this.#close(running, endedFailure(reason));
    this.#options.onEnded({ reason, detail });
  }

  #close(running: Failure, waiting: Failure): void {
    if (this.#ended.signal.aborted) return;
    this.#idleClock.stop();
    this.#reconnectClock?.stop();
    clearTimeout(this.#expiry);
    this.#endingNotice.stop();
    this.#queue.close(waiting);
    this.#ended.abort(running);
    this.#browser.pendingQuestions.setHolder(undefined);
    this.#browser.cdpProxy.close();
    this.#browser.liveHub.close(waiting);
    this.#browser.feed.close();
    this.#browser.log.close();
    this.thumbnails.close();
    this.#browser.challengeWatch.close();
  }

  #checkSelectPopups(): void {
    const { selectPopups, pages } = this.#browser;
    if (pages.shown) selectPopups.onInputHandled(pages.shown);
  }

  async #releaseAll(): Promise<void> {
    this.#inputQueue.clear();
    for (const { cdp } of this.#browser.pages.all) releaseAll(inputOf(cdp));
    await this.#browser.cdpProxy.resume();
  }

  /** Resolves when the pages have handled all input of commands, people and CDP clients. */
  #settled(): Promise<unknown> {
    const sent = this.#browser.pages.all.map(({ cdp }) => inputOf(cdp).tally.settled());
    return Promise.all([...sent, this.#browser.cdpProxy.suspend()]);
  }
}
