import { create } from "@bufbuild/protobuf";
import { type CommandContext, CommandContextSchema } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import {
  type CaptureRequest,
  type InteractRequest,
  type InteractResponse,
  InteractResponseSchema,
  type NavigateRequest,
  type NavigateResponse,
  NavigateResponseSchema,
  type Observation,
  type ObserveRequest,
  type ReadRequest,
  type ReadResponse,
  type WaitRequest,
  type WaitResponse,
  WaitResponseSchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { raceSignal } from "../../src/platform/deadline.ts";
import { asFailure, Failure } from "../../src/platform/errors.ts";
import { navigate, navigationResultOf } from "../driver/actions/navigate.ts";
import type { Scene } from "../driver/actions/scene.ts";
import { readSelection } from "../driver/actions/selection.ts";
import { waitFor } from "../driver/actions/wait-action.ts";
import { capture, type FinishedCapture } from "../driver/capture/capture.ts";
import { RefRegistry } from "../driver/elements/ref-registry.ts";
import { type ObserveScene, observe } from "../driver/observe/observe.ts";
import { readPage } from "../driver/observe/read-page.ts";
import { type ThumbnailPicture, takeCoveredThumbnail, takeThumbnail } from "../driver/observe/thumbnail.ts";
import { inputOf } from "../input/page-input.ts";
import { CommandProgress, type Progress } from "../pages/progress.ts";
import type { SessionPage } from "../pages/session-page.ts";
import type { SessionBrowser } from "../pool/session-browser.ts";
import type { VariableStore } from "../variables/variable-store.ts";
import { actAndObserve, observeAfter, type WorkResult } from "./action-sequence.ts";
import { idempotencyMemory, stepMemory } from "./answer-memory.ts";
import type { ChallengePause } from "./challenge-pause.ts";
import { inDoubt, isTakeover, type SessionControl } from "./client-control.ts";
import type { CommandQueue, QueuedKind } from "./command-queue.ts";
import type { IdleClock } from "./idle-clock.ts";
import { pictureMs, StepPictureCache, takePictureAhead } from "./step-picture-cache.ts";

/** Default timeouts in milliseconds. */
const navigateMs = 30_000;
const interactMs = 5_000;
const waitMs = 30_000;
const captureMs = 60_000;
const observeMs = 5_000;
const readMs = 10_000;
const selectionMs = 2_000;
const thumbnailMs = 2_000;

export interface CommandRunnerOptions {
  readonly browser: SessionBrowser;
  readonly queue: CommandQueue;
  readonly idleClock: IdleClock;
  readonly pause: ChallengePause;
  readonly control: SessionControl;
  readonly variables: VariableStore;
  /** Aborts with the failure for running commands when the session ends. */
  readonly ended: AbortSignal;
  /** Whether errors for refused addresses name the setting that allows the address. */
  readonly showRemedy: boolean;
}

/** A command of a client as its worker receives it. */
export interface ReceivedCommand<Request> {
  readonly context: CommandContext;
  readonly request: Request;
  /** Received bytes of the request, which distinguish a repeated command from another command with the same key. */
  readonly bytes: Uint8Array;
  /** Aborts when the caller disconnects. */
  readonly caller: AbortSignal;
  /** Called if the answer is replayed. */
  onReplay(): void;
}

interface CommandWork {
  readonly kind: QueuedKind;
  readonly context: CommandContext;
  readonly caller: AbortSignal;
  readonly timeoutMs: number;
  readonly pageId: string | undefined;
  /** Whether the command runs even while the session is paused. */
  readonly whilePaused?: boolean;
  /** Whether the command reaches the page only through input events. */
  readonly usesOnlyInput?: boolean;
}

interface CommandAnswer extends Omit<WorkResult, "page" | "title"> {
  readonly pageId: string;
  readonly url: string;
  readonly title: string;
  readonly durationMs: number;
}

/** Actions that change the page only by mouse, keyboard or touch input. */
const inputActions: ReadonlySet<InteractRequest["action"]["case"]> = new Set([
  "tap",
  "hover",
  "key",
  "drag",
  "swipe",
  "check",
  "uncheck",
]);

/** Maximum characters of an address in an error message. */
const longestAddress = 200;

const noResult = (): WorkResult => ({});

/**
 * Runs commands of API clients and people, each with a timeout. Navigate, interact and wait are queued, and run only if
 * no other person holds control.
 */
export class CommandRunner {
  readonly #options: CommandRunnerOptions;
  readonly #browser: SessionBrowser;
  readonly #queue: CommandQueue;
  readonly #memory = idempotencyMemory();
  readonly #steps = stepMemory();
  readonly #refs = new RefRegistry();
  readonly #stepPictures = new StepPictureCache();
  readonly #idleClock: IdleClock;
  readonly #pause: ChallengePause;
  readonly #control: SessionControl;
  readonly #variables: VariableStore;
  readonly #ended: AbortSignal;

  constructor(options: CommandRunnerOptions) {
    this.#options = options;
    this.#browser = options.browser;
    this.#queue = options.queue;
    this.#idleClock = options.idleClock;
    this.#pause = options.pause;
    this.#control = options.control;
    this.#variables = options.variables;
    this.#ended = options.ended;
  }

  navigate(received: ReceivedCommand<NavigateRequest>): Promise<NavigateResponse> {
    const { context, request, caller } = received;
    const { pageId, timeoutMs = navigateMs } = request;
    // A person may navigate away from a bot check.
    const whilePaused = context.clientId !== "";
    const command = { kind: "navigate", context, caller, timeoutMs, pageId, whilePaused } as const;
    const work = () =>
      this.#run(command, async (scene) => {
        const { pages, relay, downloadStore: downloads } = this.#browser;
        const { showRemedy } = this.#options;
        const navigating = navigate({ ...scene, pages, relay, downloads, showRemedy }, request);
        const landing = await navigating.catch((thrown) => this.#resultAtCheck(scene, thrown));
        const observation = request.observe && (await observeAfter({ ...scene, pages }, request.observe));
        return { ...landing, ...(observation && { observation: observation }) };
      });
    return this.#once("navigate", received, async () =>
      create(NavigateResponseSchema, { ...(await work()), status: this.#pause.status }),
    );
  }

  interact(received: ReceivedCommand<InteractRequest>): Promise<InteractResponse> {
    const { context, request, caller } = received;
    const { pageId, whilePaused, timeoutMs = interactMs } = request;
    const usesOnlyInput = [request, ...request.next].every(({ action }) => inputActions.has(action.case));
    const command = { kind: "interact", context, caller, timeoutMs, pageId, whilePaused, usesOnlyInput } as const;
    const { pages } = this.#browser;
    const work = () => this.#run(command, (scene) => actAndObserve({ ...scene, pages }, request));
    return this.#once("interact", received, async () => create(InteractResponseSchema, await work()));
  }

  async wait({ context, request, caller }: ReceivedCommand<WaitRequest>): Promise<WaitResponse> {
    const { pageId, timeoutMs = waitMs } = request;
    const command = { kind: "wait", context, caller, timeoutMs, pageId } as const;
    const work = () => this.#run(command, (scene) => waitFor(scene, request.condition).then(noResult));
    return this.#mask(context, async () => create(WaitResponseSchema, await work()));
  }

  observe(received: ReceivedCommand<ObserveRequest>): Promise<Observation> {
    return this.#describePage(received, observeMs, observe);
  }

  read(received: ReceivedCommand<ReadRequest>): Promise<ReadResponse> {
    return this.#describePage(received, readMs, readPage);
  }

  /**
   * Runs a command that describes a page without changing it. Like a capture, the command waits only for earlier
   * captures and for a running navigate or interact.
   */
  async #describePage<Request extends ObserveRequest | ReadRequest, Answer extends object>(
    { context, request, caller }: ReceivedCommand<Request>,
    defaultMs: number,
    describe: (scene: ObserveScene, request: Request) => Promise<Answer>,
  ): Promise<Answer> {
    this.#control.learn(context);
    using _activity = this.#idleClock.activity();
    const timeoutMs = Math.min(request.timeoutMs ?? defaultMs, timeoutOf(context));
    using progress = new CommandProgress(timeoutMs, [caller, this.#ended]);
    return await this.#mask(context, () => {
      const completed = this.#queue.capture(progress.signal, () => {
        return describe(this.#sceneOf(this.#browser.pages.find(request.pageId), progress, context), request);
      });
      return raceSignal(completed, progress.signal);
    });
  }

  pictureBefore(stepId: string): Buffer | undefined {
    return this.#stepPictures.find(stepId);
  }

  /** Takes a capture. Resolves when the capture is complete. */
  async capture({ context, request, caller }: ReceivedCommand<CaptureRequest>): Promise<FinishedCapture> {
    this.#control.learn(context);
    using _activity = this.#idleClock.activity();
    const timeoutMs = Math.min(request.timeoutMs ?? captureMs, timeoutOf(context));
    using progress = new CommandProgress(timeoutMs, [caller, this.#ended]);
    const made = this.#queue.capture(progress.signal, () => {
      const sessionPage = this.#browser.pages.find(request.pageId);
      const scene = this.#sceneOf(sessionPage, progress, context);
      return capture(scene, request, this.#browser.storage);
    });
    try {
      return await raceSignal(made, progress.signal);
    } catch (thrown) {
      // Disposes of a capture that completes after the deadline.
      made.then(
        ({ captured }) => captured[Symbol.asyncDispose](),
        () => undefined,
      );
      throw thrown;
    }
  }

  /**
   * Takes a small picture of the active page. Resolves with undefined if there is no usable page, or if the command
   * queue is busy.
   */
  async thumbnail(): Promise<ThumbnailPicture | undefined> {
    const page = this.#browser.pages.shown;
    if (!page || page.isCrashed || this.#queue.isBusy) return undefined;
    using progress = new CommandProgress(thumbnailMs, [this.#ended]);
    const scene = this.#sceneOf(page, progress, create(CommandContextSchema));
    if (!scene.secrets.textMask()) return await takeThumbnail(scene);
    // Queued, so that no capture shows the boxes that cover secrets meanwhile.
    return await this.#queue.capture(progress.signal, () => takeCoveredThumbnail(scene));
  }

  /** Returns the selected text for the control holder. */
  async readSelection(context: CommandContext, caller: AbortSignal): Promise<string> {
    this.#admit(context);
    using progress = new CommandProgress(selectionMs, [caller, this.#ended]);
    const { active } = this.#browser.pages;
    // Earlier input may still change the selection.
    await progress.race(inputOf(active.cdp).tally.settled());
    return await readSelection(active, progress);
  }

  /** Masks secrets in the answer or failure of a command, including secrets that the command introduces. */
  async #mask<Answer extends object>({ variables }: CommandContext, work: () => Promise<Answer>): Promise<Answer> {
    this.#variables.add(variables);
    try {
      return this.#variables.mask(await work());
    } catch (thrown) {
      throw this.#variables.maskFailure(thrown);
    }
  }

  /** Deduplicates commands by Idempotency-Key or step id. */
  #once<Answer extends object>(
    method: string,
    { context, bytes, onReplay }: ReceivedCommand<unknown>,
    work: () => Promise<Answer>,
  ): Promise<Answer> {
    const { idempotencyKey, stepId, recall: isRecall } = context;
    return this.#mask(context, () => {
      if (stepId === "") return this.#memory.run({ key: idempotencyKey, method, bytes, onReplay }, work);
      // A command that is refused because of control has not started, so a retry is allowed.
      if (!isRecall && !this.#steps.has(stepId)) this.#admit(context);
      return this.#steps.run({ key: stepId, method, bytes, onReplay, isRecall }, work);
    });
  }

  #admit(context: CommandContext): void {
    this.#control.learn(context);
    this.#control.assertFree(context);
  }

  /** Turns a navigation timeout at a bot check into a result, because a check may never finish loading. */
  #resultAtCheck({ sessionPage }: Scene, thrown: unknown): ReturnType<typeof navigationResultOf> {
    const isHeld = this.#pause.reason !== undefined && this.#browser.challengeWatch.isShownBy(sessionPage);
    if (!isHeld || asFailure(thrown).slug !== "session-timeout") throw thrown;
    return navigationResultOf(sessionPage.traffic.answer);
  }

  async #run(command: CommandWork, work: (scene: ObserveScene) => Promise<WorkResult>): Promise<CommandAnswer> {
    const { kind, context, caller, pageId } = command;
    const { challengeWatch } = this.#browser;
    this.#admit(context);
    using _activity = this.#idleClock.activity();
    const hasKey = context.idempotencyKey !== "" || context.stepId !== "";
    using callerProgress = new CommandProgress(timeoutOf(context), [this.#ended]);
    const dropped = hasKey ? callerProgress.signal : AbortSignal.any([callerProgress.signal, caller]);
    const isFinishedAnyway = hasKey || kind === "interact";
    return await this.#queue.run({ kind, whilePaused: command.whilePaused === true, dropped }, async () => {
      const { signal: takeover } = this.#control;
      const signals = [isFinishedAnyway ? callerProgress.signal : dropped, takeover];
      // A bot check aborts a wait, because a pending wait would block the commands that solve the check.
      if (kind === "wait") signals.push(this.#pause.signal);
      using progress = new CommandProgress(Math.min(command.timeoutMs, callerProgress.remaining()), signals);
      const sessionPage = this.#browser.pages.find(pageId);
      const { tally } = inputOf(sessionPage.cdp);
      const sentBefore = tally.sent;
      try {
        await progress.race(sessionPage.tab.ready);
        const scene = this.#sceneOf(sessionPage, progress, context);
        if (context.stepId) await this.#stepPictures.take(context.stepId, scene);
        else this.#stepPictures.dropAhead();
        progress.signal.throwIfAborted();
        const beganAt = performance.now();
        const { page = sessionPage, title: givenTitle, ...extra } = await raceSignal(work(scene), progress.signal);
        const durationMs = Math.round(performance.now() - beganAt);
        const [title] = await Promise.all([givenTitle ?? page.title(), challengeWatch.afterCommand(kind, page)]);
        if (context.stepId && extra.observation) this.#takePictureAhead(context);
        return { ...extra, pageId: page.id, url: page.address, title, durationMs };
      } catch (thrown) {
        if (asFailure(thrown).slug === "session-timeout") sessionPage.isUnresponsive = true;
        const mayHaveReached =
          kind === "navigate" || (kind === "interact" && (tally.sent > sentBefore || !command.usesOnlyInput));
        throw isTakeover(thrown, takeover) && mayHaveReached
          ? inDoubt(takeover)
          : this.#withAddress(sessionPage, thrown);
      }
    });
  }

  /** Takes the screenshot before the next step of a turn once the running command is done. */
  #takePictureAhead(context: CommandContext): void {
    this.#stepPictures.takeAhead(async () => {
      using progress = new CommandProgress(pictureMs, [this.#ended]);
      const scene = this.#sceneOf(this.#browser.pages.active, progress, context);
      // Queued, so that no capture shows the boxes that cover secrets meanwhile.
      return await this.#queue.capture(progress.signal, () => takePictureAhead(scene));
    });
  }

  /** Adds the page's address to a timeout, because the page is often not the page that the caller expects. */
  #withAddress({ address }: SessionPage, thrown: unknown): unknown {
    if (!(thrown instanceof Failure) || thrown.slug !== "session-timeout" || thrown.detail === undefined) return thrown;
    // The address is masked before truncation, because part of a secret would not be recognized.
    const { text } = this.#variables.mask({ text: address });
    const shown = text.length > longestAddress ? `${text.slice(0, longestAddress)}...` : text;
    const detail = `${thrown.detail} (on the page ${shown})`;
    return new Failure(thrown.slug, thrown.extensions, { detail, cause: thrown.cause });
  }

  #sceneOf(sessionPage: SessionPage, progress: Progress, context: CommandContext): ObserveScene {
    const { hasTouch, viewport, files, fileChoosers } = this.#browser;
    const secrets = this.#variables.use(context.variables);
    return { sessionPage, progress, hasTouch, viewport, files, fileChoosers, refs: this.#refs, secrets };
  }
}

/** Returns the caller's remaining timeout in milliseconds. Default: 10 minutes, longer than any command. */
function timeoutOf(context: CommandContext): number {
  return context.timeoutMs || 10 * 60_000;
}
