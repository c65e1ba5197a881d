import { create } from "@bufbuild/protobuf";
import type { CommandContext } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
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
  type WaitRequest,
  type WaitResponse,
  WaitResponseSchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { raceSignal } from "../../src/platform/deadline.ts";
import { asFailure, Failure } from "../../src/platform/errors.ts";
import { landingOf, navigate } from "../driver/actions/navigate.ts";
import type { Scene } from "../driver/actions/scene.ts";
import { readSelection } from "../driver/actions/selection.ts";
import { waitFor } from "../driver/actions/wait.ts";
import { capture, type FinishedCapture } from "../driver/capture/capture.ts";
import { RefBook } from "../driver/elements/ref-book.ts";
import { type ObserveScene, observe } from "../driver/observe/observe.ts";
import { inputOf } from "../input/page-input.ts";
import { CommandProgress, type Progress } from "../pages/progress.ts";
import type { SessionPage } from "../pages/session-page.ts";
import type { SessionBrowser } from "../pool/session-browser.ts";
import type { VariableBook } from "../variables/variable-book.ts";
import { actAndLook, lookAfter, type WorkResult } from "./action-sequence.ts";
import type { ChallengePause } from "./challenge-pause.ts";
import type { CommandQueue, QueuedKind } from "./command-queue.ts";
import { idempotencyMemory, stepMemory } from "./idempotency.ts";
import type { IdleClock } from "./idle-clock.ts";
import { inDoubt, isCut, type SessionControl } from "./session-control.ts";
import { StepAlbum } from "./step-album.ts";

/** Timeouts of commands whose request says nothing. */
const navigateMs = 30_000;
const interactMs = 5_000;
const waitMs = 30_000;
const captureMs = 60_000;
const observeMs = 5_000;
const selectionMs = 2_000;

/** What the commands of a session share with the rest of it. */
export interface SessionCommandsOptions {
  readonly browser: SessionBrowser;
  readonly queue: CommandQueue;
  readonly idleClock: IdleClock;
  readonly pause: ChallengePause;
  readonly control: SessionControl;
  readonly variables: VariableBook;
  /** Aborts, with what a running command is answered then, when the session ends. */
  readonly ended: AbortSignal;
  /** Refusals of addresses say how the operator lets them through. */
  readonly showRemedy: boolean;
}

/** A command of a client as its worker receives it. */
export interface ReceivedCommand<Request> {
  readonly context: CommandContext;
  readonly request: Request;
  /** The request as it came, by which a command that is sent again is told from another one. */
  readonly bytes: Uint8Array;
  /** Aborts when the caller has gone away. */
  readonly caller: AbortSignal;
  /** Hears that the answer is an earlier one's. */
  onReplay(): void;
}

/** What a command needs besides its work. */
interface CommandWork {
  readonly kind: QueuedKind;
  readonly context: CommandContext;
  readonly caller: AbortSignal;
  readonly timeoutMs: number;
  readonly pageId: string | undefined;
  /** Runs although the session is paused. */
  readonly whilePaused?: boolean;
  /** Nothing but input of its own reaches the page. */
  readonly isByHand?: boolean;
}

/** What every command answers. */
interface CommandAnswer extends Omit<WorkResult, "page" | "title"> {
  readonly pageId: string;
  readonly url: string;
  readonly title: string;
  readonly durationMs: number;
}

/** Actions that are input of the mouse, the keyboard or the touch screen alone. */
const byHand: ReadonlySet<InteractRequest["action"]["case"]> = new Set(["tap", "hover", "key", "drag", "swipe"]);

/** Characters of an address that an error repeats. */
const longestAddress = 200;

const noResult = (): WorkResult => ({});

/** What clients have a session do: each command in its turn, within its time, while nobody else steers. */
export class SessionCommands {
  readonly #options: SessionCommandsOptions;
  readonly #browser: SessionBrowser;
  readonly #queue: CommandQueue;
  readonly #memory = idempotencyMemory();
  readonly #steps = stepMemory();
  readonly #refs = new RefBook();
  readonly #album = new StepAlbum();
  readonly #idleClock: IdleClock;
  readonly #pause: ChallengePause;
  readonly #control: SessionControl;
  readonly #variables: VariableBook;
  readonly #ended: AbortSignal;

  constructor(options: SessionCommandsOptions) {
    this.#options = options;
    this.#browser = options.browser;
    this.#queue = options.queue;
    this.#idleClock = options.idleClock;
    this.#pause = options.pause;
    this.#control = options.control;
    this.#variables = options.variables;
    this.#ended = options.ended;
  }

  /** Loads an address. */
  navigate(received: ReceivedCommand<NavigateRequest>): Promise<NavigateResponse> {
    const { context, request, caller } = received;
    const { pageId, timeoutMs = navigateMs } = request;
    // A person may leave a bot check by the address.
    const whilePaused = context.clientId !== "";
    const command = { kind: "navigate", context, caller, timeoutMs, pageId, whilePaused } as const;
    const work = () =>
      this.#run(command, async (scene) => {
        const { pages, relay, downloadShelf: downloads } = this.#browser;
        const { showRemedy } = this.#options;
        const navigating = navigate({ ...scene, pages, relay, downloads, showRemedy }, request);
        const landing = await navigating.catch((thrown) => this.#landedAt(scene, thrown));
        const looked = request.observe && (await lookAfter({ ...scene, pages }, request.observe));
        return { ...landing, ...(looked && { observation: looked }) };
      });
    return this.#once("navigate", received, async () =>
      create(NavigateResponseSchema, { ...(await work()), status: this.#pause.status }),
    );
  }

  /** Does one thing to the page. */
  interact(received: ReceivedCommand<InteractRequest>): Promise<InteractResponse> {
    const { context, request, caller } = received;
    const { pageId, whilePaused, timeoutMs = interactMs } = request;
    const isByHand = [request, ...request.next].every(({ action }) => byHand.has(action.case));
    const command = { kind: "interact", context, caller, timeoutMs, pageId, whilePaused, isByHand } as const;
    const { pages } = this.#browser;
    const work = () => this.#run(command, (scene) => actAndLook({ ...scene, pages }, request));
    return this.#once("interact", received, async () => create(InteractResponseSchema, await work()));
  }

  /** Waits for a condition. */
  async wait({ context, request, caller }: ReceivedCommand<WaitRequest>): Promise<WaitResponse> {
    const { pageId, timeoutMs = waitMs } = request;
    const command = { kind: "wait", context, caller, timeoutMs, pageId } as const;
    const work = () => this.#run(command, (scene) => waitFor(scene, request.condition).then(noResult));
    return this.#tell(context, async () => create(WaitResponseSchema, await work()));
  }

  /** Looks at a page. */
  async observe({ context, request, caller }: ReceivedCommand<ObserveRequest>): Promise<Observation> {
    this.#control.learn(context);
    using _activity = this.#idleClock.activity();
    const timeoutMs = Math.min(request.timeoutMs ?? observeMs, patienceOf(context));
    using progress = new CommandProgress(timeoutMs, [caller, this.#ended]);
    return await this.#tell(context, () => {
      const looking = this.#queue.capture(progress.signal, () => {
        return observe(this.#sceneOf(this.#browser.pages.find(request.pageId), progress, context), request);
      });
      return raceSignal(looking, progress.signal);
    });
  }

  /** The picture of the page before a step. */
  pictureBefore(stepId: string): Buffer | undefined {
    return this.#album.find(stepId);
  }

  /** Makes a capture to its end. */
  async capture({ context, request, caller }: ReceivedCommand<CaptureRequest>): Promise<FinishedCapture> {
    this.#control.learn(context);
    using _activity = this.#idleClock.activity();
    const patience = patienceOf(context);
    const timeoutMs = Math.min(request.timeoutMs ?? captureMs, patience);
    using progress = new CommandProgress(timeoutMs, [caller, this.#ended]);
    const made = this.#queue.capture(progress.signal, () => {
      const sessionPage = this.#browser.pages.find(request.pageId);
      const scene = this.#sceneOf(sessionPage, progress, context);
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

  /** Reads the text that is selected, for the person who steers. */
  async readSelection(context: CommandContext, caller: AbortSignal): Promise<string> {
    this.#admit(context);
    using progress = new CommandProgress(selectionMs, [caller, this.#ended]);
    const { active } = this.#browser.pages;
    // What was typed before may be what selects.
    await progress.race(inputOf(active.cdp).tally.settled());
    return await readSelection(active, progress);
  }

  /** Tells what a command has come to by the names of secrets, which it may be the first to bring. */
  async #tell<Answer extends object>({ variables }: CommandContext, work: () => Promise<Answer>): Promise<Answer> {
    this.#variables.learn(variables);
    try {
      return this.#variables.mask(await work());
    } catch (thrown) {
      throw this.#variables.maskFailure(thrown);
    }
  }

  /** Does what has a name once: a command with an Idempotency-Key, or a step. */
  #once<Answer extends object>(
    method: string,
    { context, bytes, onReplay }: ReceivedCommand<unknown>,
    work: () => Promise<Answer>,
  ): Promise<Answer> {
    const { idempotencyKey, stepId, recall: isRecall } = context;
    return this.#tell(context, () => {
      if (stepId === "") return this.#memory.run({ key: idempotencyKey, method, bytes, onReplay }, work);
      // One that is refused for who steers was not begun, and may come again.
      if (!isRecall && !this.#steps.knows(stepId)) this.#admit(context);
      return this.#steps.run({ key: stepId, method, bytes, onReplay, isRecall }, work);
    });
  }

  #admit(context: CommandContext): void {
    this.#control.learn(context);
    this.#control.assertFree(context);
  }

  /** A bot check may never come to the end of its load: the session has paused for it, and that is the answer. */
  #landedAt({ sessionPage }: Scene, thrown: unknown): ReturnType<typeof landingOf> {
    const isHeld = this.#pause.reason !== undefined && this.#browser.challengeWatch.isShownBy(sessionPage);
    if (!isHeld || asFailure(thrown).slug !== "session-timeout") throw thrown;
    return landingOf(sessionPage.traffic.answer);
  }

  async #run(command: CommandWork, work: (scene: ObserveScene) => Promise<WorkResult>): Promise<CommandAnswer> {
    const { kind, context, caller, pageId } = command;
    const { challengeWatch } = this.#browser;
    this.#admit(context);
    using _activity = this.#idleClock.activity();
    const hasKey = context.idempotencyKey !== "" || context.stepId !== "";
    using patience = new CommandProgress(patienceOf(context), [this.#ended]);
    const dropped = hasKey ? patience.signal : AbortSignal.any([patience.signal, caller]);
    const isFinishedAnyway = hasKey || kind === "interact";
    return await this.#queue.run({ kind, whilePaused: command.whilePaused === true, dropped }, async () => {
      const { signal: taken } = this.#control;
      const signals = [isFinishedAnyway ? patience.signal : dropped, taken];
      // A wait holds up whoever gets through the check.
      if (kind === "wait") signals.push(this.#pause.signal);
      using progress = new CommandProgress(Math.min(command.timeoutMs, patience.remaining()), signals);
      const sessionPage = this.#browser.pages.find(pageId);
      const { tally } = inputOf(sessionPage.cdp);
      const sentBefore = tally.sent;
      try {
        await progress.race(sessionPage.tab.ready);
        const scene = this.#sceneOf(sessionPage, progress, context);
        if (context.stepId) await this.#album.take(context.stepId, scene);
        progress.signal.throwIfAborted();
        const beganAt = performance.now();
        const { page = sessionPage, title: told, ...extra } = await raceSignal(work(scene), progress.signal);
        const durationMs = Math.round(performance.now() - beganAt);
        const [title] = await Promise.all([told ?? page.title(), challengeWatch.afterCommand(kind, page)]);
        return { ...extra, pageId: page.id, url: page.address, title, durationMs };
      } catch (thrown) {
        if (asFailure(thrown).slug === "session-timeout") sessionPage.isSuspect = true;
        const mayHaveReached =
          kind === "navigate" || (kind === "interact" && (tally.sent > sentBefore || !command.isByHand));
        throw isCut(thrown, taken) && mayHaveReached ? inDoubt(taken) : this.#onPage(sessionPage, thrown);
      }
    });
  }

  /** Adds to a timeout on which page it was: often it is another one than the caller thinks. */
  #onPage({ address }: SessionPage, thrown: unknown): unknown {
    if (!(thrown instanceof Failure) || thrown.slug !== "session-timeout" || thrown.detail === undefined) return thrown;
    // Masked before it is cut: half a secret would not be found.
    const { text } = this.#variables.mask({ text: address });
    const shown = text.length > longestAddress ? `${text.slice(0, longestAddress)}...` : text;
    const detail = `${thrown.detail} (on the page ${shown})`;
    return new Failure(thrown.slug, thrown.extensions, { detail, cause: thrown.cause });
  }

  #sceneOf(sessionPage: SessionPage, progress: Progress, context: CommandContext): ObserveScene {
    const { hasTouch, viewport, files, chooserDesk } = this.#browser;
    const secrets = this.#variables.use(context.variables);
    return { sessionPage, progress, hasTouch, viewport, files, chooserDesk, refs: this.#refs, secrets };
  }
}

/** Milliseconds that the caller still waits; without a word from it, longer than any command may take. */
function patienceOf(context: CommandContext): number {
  return context.timeoutMs || 10 * 60_000;
}
