import type { Envelope } from "../cdp/cdp-envelope.ts";
import type { ConnectionUser, UserAnswer, UserCommand } from "../cdp/connection-user.ts";
import type { HiddenPage } from "../isolation/hidden-page.ts";
import type { ProcessSettings } from "../pages/device/process-settings.ts";
import { countUnlisted } from "./cdp-proxy-totals.ts";
import { BadCommand, type ClientCommand, type Params, readCommand } from "./client-command.ts";
import { ClientSettings } from "./client-settings.ts";
import {
  browserMayKnowMore,
  decideCommand,
  isWithheldUnderControl,
  refusalAtTakeover,
  refusalUnderControl,
} from "./command-policy.ts";
import { HeldInput } from "./held-input.ts";
import { PendingCommands } from "./pending-commands.ts";
import { SendQueue } from "./send-queue.ts";

/** Milliseconds after which a target paused before its first script is resumed. */
const pauseMs = 1_500;

/** Longest message, in bytes, that is sent as one buffer. */
const onePieceBytes = 64 * 1024;

/** JSON-RPC code that Chromium also uses for refused commands. */
const serverError = -32_000;
const methodNotFound = -32_601;
const unknownSession = -32_001;

/**
 * Why a client was disconnected. `browser_closed`: the client sent `Browser.close`. `closed`: the client closed its
 * connection. `lost`: the connection ended otherwise, or a message could not be handled. `session_ended`: the session
 * or its browser ended. `too_slow`: the client read or sent too slowly.
 */
export type LeaveReason = "browser_closed" | "closed" | "lost" | "session_ended" | "too_slow";

/** Data and callbacks of the session that a client needs. */
export interface ClientScene {
  readonly browserVersion: string;
  readonly hiddenPage: HiddenPage | undefined;
  /** Returns the number of pages of the session, including pages in contexts of clients. */
  pages(): number;
  /** Returns the path of a session file, or undefined if no file has the name. */
  fileOf(name: string): string | undefined;
  /** Returns whether a person holds control. Clients can then only read. */
  isHeld(): boolean;
  /** Sets the session's download directory for a context that a client created. */
  keepDownloads(browserContextId: string): Promise<unknown>;
  /** Page settings that a renderer process accepts from one CDP session at a time. */
  readonly processSettings: ProcessSettings;
  onCommand(): void;
}

/**
 * A CDP client of the session's browser. Its commands are forwarded on CDP sessions of its own unless the policy
 * refuses them. The client receives only its own answers and events.
 */
export class CdpClient {
  readonly outbox = new SendQueue();
  readonly #user: ConnectionUser;
  readonly #scene: ClientScene;
  readonly #contexts = new Set<string>();
  /** The client's CDP sessions with download events enabled. `undefined` is the root session. */
  readonly #downloadListeners = new Set<string | undefined>();
  /** Targets for which the client receives dialogs, by the client's CDP session. */
  readonly #dialogListeners = new Map<string, string>();
  /** Timers that resume paused targets, by the client's CDP session. */
  readonly #resumes = new Map<string, NodeJS.Timeout>();
  /** Targets on which the client has changed a setting that only one CDP session can hold, by the client's session. */
  readonly #exclusiveSettings = new Map<string, string>();
  readonly #heldInput: HeldInput;
  readonly #pendingCommands: PendingCommands;
  readonly #settings: ClientSettings;
  readonly #gone = Promise.withResolvers<void>();
  /** Deliveries deferred while the hidden page opens. */
  readonly #deferred: (() => void)[] = [];
  /** True while a person holds control or the person's input is still being handled. */
  #isHeld: boolean;
  messages = 0;
  /** Number of events withheld because a person held control. */
  withheld = 0;
  /** Why the client was disconnected. Undefined while the client is connected. */
  left: LeaveReason | undefined;

  constructor(user: ConnectionUser, scene: ClientScene) {
    this.#user = user;
    this.#scene = scene;
    this.#isHeld = scene.isHeld();
    const send = (command: UserCommand) => new Promise((resolve) => user.send(command, resolve));
    const sendParams = ({ params, ...command }: Omit<UserCommand, "params"> & { params: Params }) =>
      send({ ...command, params: JSON.stringify(params) });
    this.#heldInput = new HeldInput(sendParams);
    this.#pendingCommands = new PendingCommands(sendParams);
    this.#settings = new ClientSettings(send);
    user.onevent = (event, members, sessionId) => this.#onEvent(event, members, sessionId);
    user.onclose = () => this.leave("session_ended");
  }

  /** Handles a message. Calls must not overlap. */
  async take(bytes: Buffer): Promise<void> {
    this.messages += 1;
    this.#scene.onCommand();
    try {
      const command = await readCommand(bytes);
      if (!this.left) this.#run(command);
    } catch (thrown) {
      if (!(thrown instanceof BadCommand)) throw thrown;
      this.#refuse(thrown.id, undefined, thrown.message, thrown.code);
    }
  }

  /** Returns whether the client receives the dialogs of a page and may answer before the session does. */
  handlesDialogs(targetId: string): boolean {
    return [...this.#dialogListeners.values()].includes(targetId);
  }

  /** Sends a download event if the client enabled download events. */
  notifyDownload(method: string, params: object): void {
    const members = Buffer.from(`"method":"${method}","params":${JSON.stringify(params)}`);
    for (const sessionId of this.#downloadListeners) this.#deliver(undefined, members, sessionId);
  }

  /**
   * Releases the client's held keys and buttons and abandons its pending commands. If a person holds control, also
   * reverts settings that block the page (see `ClientSettings`). Resolves when no earlier command can reach a page any
   * longer.
   */
  async suspend(): Promise<void> {
    this.#isHeld ||= this.#scene.isHeld();
    const undone = this.#isHeld ? this.#settings.undo() : undefined;
    await Promise.all([undone, this.#heldInput.releaseAll(), this.#pendingCommands.abandon()]);
  }

  /** Resumes the client if no person holds control. Resolves when its settings are reapplied. */
  async resume(): Promise<void> {
    if (this.#scene.isHeld()) return;
    this.#isHeld = false;
    await this.#settings.redo();
  }

  leave(reason: LeaveReason): void {
    if (this.left) return;
    this.left = reason;
    for (const timer of this.#resumes.values()) clearTimeout(timer);
    if (reason === "too_slow") this.outbox.discard();
    else this.outbox.end();
    this.#gone.resolve(this.#user.close());
  }

  /** Resolves when the client is disconnected and its contexts, pauses and settings are removed from the browser. */
  get gone(): Promise<void> {
    return this.#gone.promise;
  }

  #run(command: ClientCommand): void {
    const { id, method, sessionId } = command;
    if (sessionId !== undefined && !this.#user.owns(sessionId)) {
      this.#refuse(id, sessionId, "Session with given id not found.", unknownSession);
      return;
    }
    const held = this.#isHeld ? refusalUnderControl(method) : undefined;
    const decision = held === undefined ? this.#decide(command) : ({ kind: "refuse", why: held } as const);
    switch (decision.kind) {
      case "pass":
        this.#forward(command, command.params);
        break;
      case "change":
        this.#forward(command, JSON.stringify(decision.params));
        break;
      case "refuse":
        this.#refuse(id, sessionId, decision.why);
        break;
      case "unlisted":
        countUnlisted(method, browserMayKnowMore(this.#scene.browserVersion));
        this.#refuse(
          id,
          sessionId,
          `'${method.slice(0, 100)}' wasn't found among the methods that sessions serve`,
          methodNotFound,
        );
        break;
      case "answer":
        this.#track(command);
        this.#answer(id, decision.result, sessionId);
        break;
      case "close":
        this.#answer(id, {}, sessionId);
        this.leave("browser_closed");
        break;
    }
  }

  #decide({ method, sessionId, parse }: ClientCommand) {
    return decideCommand(method, parse, () => ({
      isBrowserSession: this.#user.targetOf(sessionId) === undefined,
      ownsContext: (id) => this.#contexts.has(id),
      hidesPages: this.#scene.hiddenPage !== undefined,
      pages: this.#scene.pages(),
      fileOf: (name) => this.#scene.fileOf(name),
    }));
  }

  #forward(command: ClientCommand, params: string | Buffer): void {
    const { id, method, sessionId } = command;
    if (!this.#settings.record(command)) {
      this.#refuse(id, sessionId, "the connection's settings exceed 1 MiB: use fewer or shorter settings");
      return;
    }
    this.#track(command);
    const { promise: answered, resolve: onAnswer } = Promise.withResolvers<void>();
    if (method.startsWith("Input.")) this.#heldInput.record(command, answered);
    const end = this.#pendingCommands.begin(command, () => this.#refuse(id, sessionId, refusalAtTakeover));
    this.#send({ method, params, sessionId }, (answer) => {
      onAnswer();
      const isPending = end();
      const isNewContext = method === "Target.createBrowserContext" && "bytes" in answer;
      const ready = isNewContext ? this.#takeContext(answer.bytes) : undefined;
      if (!isPending) return;
      if (ready) void ready.then(() => this.#forwardAnswer(id, answer, sessionId));
      else this.#forwardAnswer(id, answer, sessionId);
    });
  }

  /** Sends a command. For a setting that only one CDP session can hold, our own session first releases the setting. */
  #send(command: UserCommand, onAnswer: (answer: UserAnswer) => void): void {
    const { method, sessionId } = command;
    const { processSettings } = this.#scene;
    const target = processSettings.has(method) ? this.#user.targetOf(sessionId) : undefined;
    if (!target || sessionId === undefined) {
      this.#user.send(command, onAnswer);
      return;
    }
    const { targetId } = target;
    this.#exclusiveSettings.set(sessionId, targetId);
    processSettings.release(method, targetId);
    this.#user.send(command, (first) => {
      const isElsewhere = isInEffect(first);
      const end = (answer: UserAnswer): void => {
        // Our setting is restored: the client may have cleared its setting, or the command failed.
        processSettings.restore(isElsewhere ? undefined : targetId);
        onAnswer(answer);
      };
      if (!isElsewhere) {
        end(first);
        return;
      }
      // Our setting may be held by another page of the same process.
      processSettings.releaseAll(method, targetId);
      this.#user.send(command, end);
    });
  }

  #forwardAnswer(id: number, answer: UserAnswer, sessionId: string | undefined): void {
    if ("bytes" in answer) this.#deliver(id, answer.bytes, sessionId);
    else this.#refuse(id, sessionId, answer.failure);
  }

  /** Tracks which events the client enables and which targets it resumes. */
  #track({ method, sessionId, parse }: ClientCommand): void {
    switch (method) {
      case "Browser.setDownloadBehavior":
        if (parse().eventsEnabled === true) this.#downloadListeners.add(sessionId);
        else this.#downloadListeners.delete(sessionId);
        break;
      case "Page.enable": {
        const target = this.#user.targetOf(sessionId);
        if (target && sessionId !== undefined) this.#dialogListeners.set(sessionId, target.targetId);
        break;
      }
      case "Page.disable":
        if (sessionId !== undefined) this.#dialogListeners.delete(sessionId);
        break;
      case "Runtime.runIfWaitingForDebugger":
        if (sessionId !== undefined) this.#forgetPause(sessionId);
        break;
      default:
    }
  }

  #takeContext(answer: Buffer): Promise<unknown> | undefined {
    const { result } = membersOf(answer);
    const id = result?.browserContextId;
    if (typeof id !== "string") return undefined;
    this.#contexts.add(id);
    return this.#scene.keepDownloads(id).catch(() => undefined);
  }

  #onEvent({ method }: Envelope, members: Buffer, sessionId: string | undefined): void {
    if (this.#isHeld && isWithheldUnderControl(method)) {
      this.withheld += 1;
      return;
    }
    if (method === "Target.attachedToTarget") this.#watchPause(membersOf(members).params ?? {});
    if (method === "Target.detachedFromTarget") {
      const { sessionId: gone } = membersOf(members).params ?? {};
      if (typeof gone === "string") this.#forgetSession(gone);
    }
    const visible = method === "Page.javascriptDialogOpening" ? withHandler(members) : members;
    this.#deliver(undefined, visible, sessionId);
  }

  /** Resumes a paused target after 1.5 s, so that an unresponsive client does not block other users of the page. */
  #watchPause({ waitingForDebugger, sessionId }: Params): void {
    if (waitingForDebugger !== true || typeof sessionId !== "string") return;
    const resume = (): void => {
      this.#resumes.delete(sessionId);
      const command = { method: "Runtime.runIfWaitingForDebugger", params: "", sessionId };
      this.#user.send(command, () => undefined);
    };
    this.#resumes.set(sessionId, setTimeout(resume, pauseMs));
  }

  #forgetPause(sessionId: string): void {
    clearTimeout(this.#resumes.get(sessionId));
    this.#resumes.delete(sessionId);
  }

  #forgetSession(sessionId: string): void {
    this.#forgetPause(sessionId);
    this.#downloadListeners.delete(sessionId);
    this.#dialogListeners.delete(sessionId);
    this.#settings.forgetSession(sessionId);
    const settled = this.#exclusiveSettings.get(sessionId);
    if (this.#exclusiveSettings.delete(sessionId)) this.#scene.processSettings.restore(settled);
  }

  #answer(id: number, result: object, sessionId: string | undefined): void {
    this.#deliver(id, Buffer.from(`"result":${JSON.stringify(result)}`), sessionId);
  }

  #refuse(id: number | undefined, sessionId: string | undefined, message: string, code = serverError): void {
    this.#deliver(id, Buffer.from(`"error":${JSON.stringify({ code, message })}`), sessionId);
  }

  #deliver(id: number | undefined, members: Buffer, sessionId: string | undefined): void {
    const { hiddenPage } = this.#scene;
    if (hiddenPage?.opening) {
      this.#deferred.push(() => this.#deliver(id, members, sessionId));
      if (this.#deferred.length === 1) void hiddenPage.opening.then(() => this.#sendDeferred());
      return;
    }
    const visible = hiddenPage ? hiddenPage.strip(members) : members;
    if (visible) this.#reply(id, visible, sessionId);
  }

  /** Delivers the deferred messages once the targets of the hidden page are known. */
  #sendDeferred(): void {
    for (const deliver of this.#deferred.splice(0)) deliver();
  }

  #reply(id: number | undefined, members: Buffer, sessionId: string | undefined): void {
    if (this.left) return;
    const head = Buffer.from(id === undefined ? "{" : `{"id":${id},`);
    const tail = Buffer.from(sessionId === undefined ? "}" : `,"sessionId":${JSON.stringify(sessionId)}}`);
    const pieces = [head, members, tail];
    if (!this.outbox.push(members.length <= onePieceBytes ? [Buffer.concat(pieces)] : pieces)) this.leave("too_slow");
  }
}

/**
 * Sets `hasBrowserHandler`. Headless shell reports that dialogs have no handler, and DevTools-based clients then
 * dismiss them immediately. The session handles dialogs that no client answers.
 */
function withHandler(dialogOpening: Buffer): Buffer {
  const message = membersOf(dialogOpening);
  const visible = { ...message, params: { ...message.params, hasBrowserHandler: true } };
  return Buffer.from(JSON.stringify(visible).slice(1, -1));
}

/** Returns whether a setting was refused because another session of the same process holds it. */
function isInEffect(answer: UserAnswer): boolean {
  return "bytes" in answer && answer.bytes.includes("override is already in effect");
}

/** Parses the members of a browser message. The browser is trusted to follow the protocol's types. */
function membersOf(members: Buffer): { readonly params?: Params; readonly result?: Params } {
  return JSON.parse(`{${members.toString()}}`);
}
