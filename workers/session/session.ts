import { setImmediate } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import type { CommandContext, LendRequest } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { Event } from "../../src/gen/pilothouse/v1/common_pb.ts";
import {
  type CaptureRequest,
  type CdpResponse,
  type InteractRequest,
  InteractRequestSchema,
  type InteractResponse,
  InteractResponseSchema,
  type NavigateRequest,
  NavigateRequestSchema,
  type NavigateResponse,
  NavigateResponseSchema,
  type OnChallenge,
  SessionEndedReason,
  type SessionState,
  type WaitRequest,
  type WaitResponse,
  WaitResponseSchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { raceSignal } from "../../src/platform/deadline.ts";
import { asFailure, type Failure, fail } from "../../src/platform/errors.ts";
import { Aftermath } from "../actions/aftermath.ts";
import { interact } from "../actions/interact.ts";
import { navigate } from "../actions/navigate.ts";
import { activatePage, closePage, goInHistory, reload } from "../actions/page-control.ts";
import type { Scene } from "../actions/scene.ts";
import { waitFor } from "../actions/wait.ts";
import { capture, type FinishedCapture } from "../capture/capture.ts";
import type { KeptFile, SessionFiles } from "../files/session-files.ts";
import { CommandProgress } from "../pages/progress.ts";
import type { SessionPage } from "../pages/session-page.ts";
import { shownText } from "../pages/shown-text.ts";
import type { SessionBrowser } from "../pool/session-browser.ts";
import type { Happening } from "../reports/reports.ts";
import { ChallengePause } from "./challenge-pause.ts";
import { CommandQueue, type QueuedKind } from "./command-queue.ts";
import { endedFailure } from "./ended-reason.ts";
import { IdempotencyMemory } from "./idempotency.ts";
import { IdleClock } from "./idle-clock.ts";
import { describeSession } from "./session-state.ts";

/** Timeouts of commands whose request says nothing. */
const navigateMs = 30_000;
const interactMs = 5_000;
const waitMs = 30_000;
const captureMs = 60_000;

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

/** What a command needs besides its work. */
interface Command {
  readonly kind: QueuedKind;
  readonly context: CommandContext | undefined;
  readonly caller: AbortSignal;
  readonly timeoutMs: number;
  readonly pageId: string | undefined;
  /** Runs although the session is paused. */
  readonly whilePaused?: boolean;
}

/** What the work of a command adds to its answer. */
interface WorkResult {
  readonly httpStatus?: number;
  /** Names of the pages that it has opened. */
  readonly opened?: string[];
  /** The title of the page, where it is known already. */
  readonly title?: string | undefined;
  /** The page that the answer is about, when it is not the one that the command began with. */
  readonly page?: SessionPage;
}

/** What every command answers. */
interface CommandAnswer extends Omit<WorkResult, "page" | "title"> {
  readonly pageId: string;
  readonly url: string;
  readonly title: string;
  readonly durationMs: number;
}

const noResult = (): WorkResult => ({});

/** One browser that a client drives: its commands in their order, its clocks, and its end. */
export class Session {
  readonly id: string;
  readonly placementEpoch: bigint;
  readonly #options: SessionOptions;
  readonly #browser: SessionBrowser;
  readonly #queue = new CommandQueue();
  readonly #memory = new IdempotencyMemory();
  readonly #idleClock: IdleClock;
  readonly #pause: ChallengePause;
  readonly #expiry: NodeJS.Timeout;
  readonly #ended = new AbortController();
  #controlEpoch = 0n;

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
    const { onChallenge, onEvent } = options;
    this.#pause = new ChallengePause({ onChallenge, queue: this.#queue, idleClock: this.#idleClock, onEvent });
    this.#browser.challengeWatch.listen(this.#pause);
    this.#browser.lost.then((detail) => this.#endByItself(SessionEndedReason.CRASHED, detail));
  }

  /** How many commands wait for their turn. */
  get queued(): number {
    return this.#queue.length;
  }

  /** Loads an address. */
  navigate(
    context: CommandContext | undefined,
    request: NavigateRequest,
    caller: AbortSignal,
    onReplay: () => void = () => undefined,
  ): Promise<NavigateResponse> {
    const { pageId, timeoutMs = navigateMs } = request;
    const command = { kind: "navigate", context, caller, timeoutMs, pageId } as const;
    const work = () =>
      this.#run(command, async (scene) => {
        const { pages, relay } = this.#browser;
        const navigating = navigate({ ...scene, pages, relay, showRemedy: this.#options.showRemedy }, request);
        const status = await navigating.catch((thrown) => this.#landedAt(scene, thrown));
        return status === undefined ? {} : { httpStatus: status };
      });
    const key = context?.idempotencyKey ?? "";
    return this.#memory.run(
      { key, method: "navigate", encode: () => toBinary(NavigateRequestSchema, request), onReplay },
      async () => create(NavigateResponseSchema, { ...(await work()), status: this.#pause.status }),
    );
  }

  /** Does one thing to the page. */
  interact(
    context: CommandContext | undefined,
    request: InteractRequest,
    caller: AbortSignal,
    onReplay: () => void = () => undefined,
  ): Promise<InteractResponse> {
    const { pageId, whilePaused, timeoutMs = interactMs } = request;
    const command = { kind: "interact", context, caller, timeoutMs, pageId, whilePaused } as const;
    const work = () => this.#run(command, (scene) => this.#act(scene, request.action));
    const key = context?.idempotencyKey ?? "";
    return this.#memory.run(
      { key, method: "interact", encode: () => toBinary(InteractRequestSchema, request), onReplay },
      async () => create(InteractResponseSchema, await work()),
    );
  }

  /** Waits for a condition. */
  async wait(context: CommandContext | undefined, request: WaitRequest, caller: AbortSignal): Promise<WaitResponse> {
    const { pageId, timeoutMs = waitMs } = request;
    const command = { kind: "wait", context, caller, timeoutMs, pageId } as const;
    return create(
      WaitResponseSchema,
      await this.#run(command, (scene) => waitFor(scene, request.condition).then(noResult)),
    );
  }

  /** Makes a capture to its end. */
  async capture(
    context: CommandContext | undefined,
    request: CaptureRequest,
    caller: AbortSignal,
  ): Promise<FinishedCapture> {
    this.#checkControl(context);
    using _activity = this.#idleClock.activity();
    const patience = patienceOf(context);
    const timeoutMs = Math.min(request.timeoutMs ?? captureMs, patience);
    using progress = new CommandProgress(timeoutMs, [caller, this.#ended.signal]);
    const made = this.#queue.capture(progress.signal, () => {
      const sessionPage = this.#browser.pages.find(request.pageId);
      const scene = this.#sceneOf(sessionPage, progress);
      return capture(scene, request, this.#browser.storage);
    });
    try {
      return await raceSignal(made, progress.signal);
    } catch (thrown) {
      // One that comes too late has nobody to read it.
      made.then(
        ({ captured }) => captured[Symbol.asyncDispose](),
        () => undefined,
      );
      throw thrown;
    }
  }

  /** Reads what the session shows, whatever its page does. */
  state(): Promise<SessionState> {
    if (this.#ended.signal.aborted) return Promise.reject(this.#ended.signal.reason);
    return raceSignal(describeSession(this.#browser, this.#pause), this.#ended.signal);
  }

  /** The session's files. Using them is use of the session, and ends with it. */
  useFiles(caller: AbortSignal): { readonly files: SessionFiles; readonly signal: AbortSignal } & Disposable {
    const signal = AbortSignal.any([caller, this.#ended.signal]);
    signal.throwIfAborted();
    const activity = this.#idleClock.activity();
    return { files: this.#browser.files, signal, [Symbol.dispose]: () => activity[Symbol.dispose]() };
  }

  /** All files of the session, those that changed last first. */
  get files(): readonly KeptFile[] {
    return this.#browser.files.all;
  }

  /** Gives what happens in the browser from now on. */
  watch(signal: AbortSignal): AsyncIterable<Event> {
    return this.#browser.feed.read(this.id, signal);
  }

  /** Lends the browser to a client that speaks the DevTools protocol, until it leaves. */
  lend(requests: AsyncIterable<LendRequest>, signal: AbortSignal): AsyncIterable<CdpResponse> {
    return this.#browser.lendDesk.lend(
      requests,
      // Nobody can take control of a session yet.
      { isHeld: () => false, onCommand: () => this.#idleClock.touch() },
      signal,
    );
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
    this.#browser.lendDesk.close();
    this.#browser.feed.close();
    this.#browser.challengeWatch.close();
  }

  /** A bot check may never come to the end of its load: the session has paused for it, and that is the answer. */
  #landedAt({ sessionPage }: Scene, thrown: unknown): number | undefined {
    const isHeld = this.#pause.reason !== undefined && this.#browser.challengeWatch.isShownBy(sessionPage);
    if (!isHeld || asFailure(thrown).slug !== "session-timeout") throw thrown;
    return sessionPage.traffic.answer?.status;
  }

  async #run(command: Command, work: (scene: Scene) => Promise<WorkResult>): Promise<CommandAnswer> {
    const { kind, context, caller, pageId } = command;
    const { challengeWatch } = this.#browser;
    this.#checkControl(context);
    using _activity = this.#idleClock.activity();
    const hasKey = (context?.idempotencyKey ?? "") !== "";
    using patience = new CommandProgress(patienceOf(context), [this.#ended.signal]);
    const dropped = hasKey ? patience.signal : AbortSignal.any([patience.signal, caller]);
    const isFinishedAnyway = hasKey || kind === "interact";
    return await this.#queue.run({ kind, whilePaused: command.whilePaused === true, dropped }, async () => {
      const signals = [isFinishedAnyway ? patience.signal : dropped];
      // A wait holds up whoever gets through the check.
      if (kind === "wait") signals.push(this.#pause.signal);
      using progress = new CommandProgress(Math.min(command.timeoutMs, patience.remaining()), signals);
      const sessionPage = this.#browser.pages.find(pageId);
      const beganAt = performance.now();
      try {
        await progress.race(sessionPage.tab.ready);
        const scene = this.#sceneOf(sessionPage, progress);
        const { page = sessionPage, title: told, ...extra } = await raceSignal(work(scene), progress.signal);
        const durationMs = Math.round(performance.now() - beganAt);
        const [title] = await Promise.all([told ?? page.title(), challengeWatch.afterCommand(kind, page)]);
        return { ...extra, pageId: page.id, url: page.address, title, durationMs };
      } catch (thrown) {
        if (asFailure(thrown).slug === "session-timeout") sessionPage.isSuspect = true;
        throw thrown;
      }
    });
  }

  /** Does an action; one upon what a page shows answers when it is known what it has set going. */
  async #act(scene: Scene, action: InteractRequest["action"]): Promise<WorkResult> {
    const { pages } = this.#browser;
    switch (action.case) {
      case "back":
      case "forward":
        await goInHistory({ ...scene, pages }, action.case === "back" ? -1 : 1);
        return {};
      case "reload":
        await reload({ ...scene, pages });
        return {};
      case "activatePage":
        await activatePage({ ...scene, pages }, action.value);
        return { page: pages.active };
      case "closePage":
        await closePage({ ...scene, pages }, action.value);
        return { page: pages.active };
      default: {
        const aftermath = new Aftermath(pages, scene.sessionPage);
        const told = await interact(scene, action);
        const { opened, title } = await aftermath.settle(scene.progress, told);
        return { opened: opened.map(({ id }) => id), title: title && shownText(title) };
      }
    }
  }

  #sceneOf(sessionPage: SessionPage, progress: CommandProgress): Scene {
    const { hasTouch, viewport, files, dialogDesk } = this.#browser;
    return { sessionPage, progress, hasTouch, viewport, files, dialogDesk };
  }

  #checkControl(context: CommandContext | undefined): void {
    const epoch = context?.controlEpoch ?? 0n;
    if (epoch < this.#controlEpoch) {
      throw fail("conflict", {}, { detail: "somebody else has taken control since the command was sent" });
    }
    this.#controlEpoch = epoch;
  }
}

/** Milliseconds that the caller still waits; without a word from it, longer than any command may take. */
function patienceOf(context: CommandContext | undefined): number {
  return context?.timeoutMs || 10 * 60_000;
}
