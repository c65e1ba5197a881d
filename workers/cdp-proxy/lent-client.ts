import type { Envelope } from "../cdp/envelope.ts";
import type { UserAnswer, UserCommand, WireUser } from "../cdp/wire-user.ts";
import type { HiddenPage } from "../isolation/hidden-page.ts";
import type { ProcessSettings } from "../pages/device/process-settings.ts";
import { BadCommand, type ClientCommand, type Params, readCommand } from "./client-command.ts";
import { ClientErrands } from "./client-errands.ts";
import { ClientHands } from "./client-hands.ts";
import { ClientSettings } from "./client-settings.ts";
import { countUnjudged } from "./lend-totals.ts";
import { Outbox } from "./outbox.ts";
import { browserMayKnowMore, isWithheldUnderControl, judge, refusalAtTakeover, refusalUnderControl } from "./policy.ts";

/** How long a client may leave a page waiting that it has had paused before its first script. */
const pauseMs = 1_500;

/** A message up to this length is sent in one piece. */
const onePieceBytes = 64 * 1024;

/** As JSON-RPC has it, for what the browser refuses, too. */
const serverError = -32_000;
const methodNotFound = -32_601;
const unknownSession = -32_001;

/** Why a client is with us no more. */
export type LeaveReason = "browser_closed" | "closed" | "lost" | "session_ended" | "too_slow";

/** What a client needs of its session. */
export interface ClientScene {
  /** The browser's full version. */
  readonly browserVersion: string;
  /** What no client is told of. */
  readonly hiddenPage: HiddenPage | undefined;
  /** How many pages the session has, those of clients' own contexts among them. */
  pages(): number;
  /** Where a file of the session is, by its name; undefined when there is none. */
  fileOf(name: string): string | undefined;
  /** Whether a person holds control: then clients only read. */
  isHeld(): boolean;
  /** Has the downloads of a context that a client has made go where the session's go. */
  keepDownloads(browserContextId: string): Promise<unknown>;
  /** Settings of the session's pages that a process takes from one session at a time. */
  readonly processSettings: ProcessSettings;
  /** Hears that a command has come. */
  onCommand(): void;
}

/**
 * A client of the session's browser. What it says is passed on to a session of its own, but for what would harm the
 * session, and so are the answers and events that are its own.
 */
export class LentClient {
  readonly outbox = new Outbox();
  readonly #user: WireUser;
  readonly #scene: ClientScene;
  readonly #contexts = new Set<string>();
  /** Sessions on which it hears of downloads; undefined for its root. */
  readonly #downloadEars = new Set<string | undefined>();
  /** Pages whose dialogs it hears of, by its sessions of them. */
  readonly #dialogEars = new Map<string, string>();
  /** By session, what lets a target run that the client leaves paused. */
  readonly #resumes = new Map<string, NodeJS.Timeout>();
  /** Sessions on which it has made settings that a process takes from one session at a time, with their targets. */
  readonly #settled = new Map<string, string>();
  readonly #hands: ClientHands;
  readonly #errands: ClientErrands;
  readonly #settings: ClientSettings;
  readonly #gone = Promise.withResolvers<void>();
  /** What it is to be told when a page of ours has opened. */
  readonly #held: (() => void)[] = [];
  /** A person holds control, or what a person has done is not handled yet. */
  #isHeld: boolean;
  /** How many messages it has sent. */
  messages = 0;
  /** How many events it was not told of because a person held control. */
  withheld = 0;
  /** Why it is with us no more; the first reason counts. */
  left: LeaveReason | undefined;

  constructor(user: WireUser, scene: ClientScene) {
    this.#user = user;
    this.#scene = scene;
    this.#isHeld = scene.isHeld();
    const send = (command: UserCommand) => new Promise((resolve) => user.send(command, resolve));
    const sendParams = ({ params, ...command }: Omit<UserCommand, "params"> & { params: Params }) =>
      send({ ...command, params: JSON.stringify(params) });
    this.#hands = new ClientHands(sendParams);
    this.#errands = new ClientErrands(sendParams);
    this.#settings = new ClientSettings(send);
    user.onevent = (event, members, sessionId) => this.#onEvent(event, members, sessionId);
    user.onclose = () => this.leave("session_ended");
  }

  /** Takes a message of the client; the next one has to wait until this one is taken. */
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

  /** Whether it may answer the dialogs of a page: its answer then counts before ours. */
  hearsDialogs(targetId: string): boolean {
    return [...this.#dialogEars.values()].includes(targetId);
  }

  /** Tells it of a download of the session, if it has asked for that. */
  tellDownload(method: string, params: object): void {
    const members = Buffer.from(`"method":"${method}","params":${JSON.stringify(params)}`);
    for (const sessionId of this.#downloadEars) this.#deliver(undefined, members, sessionId);
  }

  /**
   * Gives way to a person: releases what it holds down, and takes back what the person cannot do with. Resolves when nothing
   * that it has had done reaches a page any more.
   */
  async giveWay(): Promise<void> {
    this.#isHeld ||= this.#scene.isHeld();
    const undone = this.#isHeld ? this.#settings.undo() : undefined;
    await Promise.all([undone, this.#hands.letGo(), this.#errands.abandon()]);
  }

  /** Goes on if no person holds control any more; resolves when its settings are made again. */
  async resume(): Promise<void> {
    if (this.#scene.isHeld()) return;
    this.#isHeld = false;
    await this.#settings.redo();
  }

  /** Ends it. */
  leave(reason: LeaveReason): void {
    if (this.left) return;
    this.left = reason;
    for (const timer of this.#resumes.values()) clearTimeout(timer);
    if (reason === "too_slow") this.outbox.discard();
    else this.outbox.end();
    this.#gone.resolve(this.#user.close());
  }

  /** Resolves when it has left, and nothing is left in the browser of what it has opened, paused or set. */
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
    const verdict = held === undefined ? this.#judge(command) : ({ kind: "refuse", why: held } as const);
    switch (verdict.kind) {
      case "pass":
        this.#pass(command, command.params);
        break;
      case "change":
        this.#pass(command, JSON.stringify(verdict.params));
        break;
      case "refuse":
        this.#refuse(id, sessionId, verdict.why);
        break;
      case "unjudged":
        countUnjudged(method, browserMayKnowMore(this.#scene.browserVersion));
        this.#refuse(
          id,
          sessionId,
          `'${method.slice(0, 100)}' wasn't found among the methods that sessions serve`,
          methodNotFound,
        );
        break;
      case "answer":
        this.#note(command);
        this.#answer(id, verdict.result, sessionId);
        break;
      case "close":
        this.#answer(id, {}, sessionId);
        this.leave("browser_closed");
        break;
    }
  }

  #judge({ method, sessionId, parse }: ClientCommand) {
    return judge(method, parse, () => ({
      isBrowserSession: this.#user.targetOf(sessionId) === undefined,
      ownsContext: (id) => this.#contexts.has(id),
      hidesPages: this.#scene.hiddenPage !== undefined,
      pages: this.#scene.pages(),
      fileOf: (name) => this.#scene.fileOf(name),
    }));
  }

  #pass(command: ClientCommand, params: string | Buffer): void {
    const { id, method, sessionId } = command;
    if (!this.#settings.note(command)) {
      this.#refuse(id, sessionId, "the connection's settings take more than 1 MiB: make fewer, or shorter ones");
      return;
    }
    this.#note(command);
    const { promise: answered, resolve: onAnswer } = Promise.withResolvers<void>();
    if (method.startsWith("Input.")) this.#hands.note(command, answered);
    const end = this.#errands.begin(command, () => this.#refuse(id, sessionId, refusalAtTakeover));
    this.#send({ method, params, sessionId }, (answer) => {
      onAnswer();
      const isAwaited = end();
      const isNewContext = method === "Target.createBrowserContext" && "bytes" in answer;
      const ready = isNewContext ? this.#takeContext(answer.bytes) : undefined;
      if (!isAwaited) return;
      if (ready) void ready.then(() => this.#pressOn(id, answer, sessionId));
      else this.#pressOn(id, answer, sessionId);
    });
  }

  /** Sends a command to the browser; a setting that a process takes from one session takes the place of ours. */
  #send(command: UserCommand, onAnswer: (answer: UserAnswer) => void): void {
    const { method, sessionId } = command;
    const { processSettings } = this.#scene;
    const target = processSettings.has(method) ? this.#user.targetOf(sessionId) : undefined;
    if (!target || sessionId === undefined) {
      this.#user.send(command, onAnswer);
      return;
    }
    const { targetId } = target;
    this.#settled.set(sessionId, targetId);
    processSettings.release(method, targetId);
    this.#user.send(command, (first) => {
      const isElsewhere = isInEffect(first);
      const end = (answer: UserAnswer): void => {
        // The client may have taken its own back, or have been refused.
        processSettings.restore(isElsewhere ? undefined : targetId);
        onAnswer(answer);
      };
      if (!isElsewhere) {
        end(first);
        return;
      }
      // Ours may be held by another page of the same process.
      processSettings.releaseAll(method, targetId);
      this.#user.send(command, end);
    });
  }

  /** Passes an answer of the browser on. */
  #pressOn(id: number, answer: UserAnswer, sessionId: string | undefined): void {
    if ("bytes" in answer) this.#deliver(id, answer.bytes, sessionId);
    else this.#refuse(id, sessionId, answer.failure);
  }

  /** Takes note of what the client asks to hear, and of what it lets run. */
  #note({ method, sessionId, parse }: ClientCommand): void {
    switch (method) {
      case "Browser.setDownloadBehavior":
        if (parse().eventsEnabled === true) this.#downloadEars.add(sessionId);
        else this.#downloadEars.delete(sessionId);
        break;
      case "Page.enable": {
        const target = this.#user.targetOf(sessionId);
        if (target && sessionId !== undefined) this.#dialogEars.set(sessionId, target.targetId);
        break;
      }
      case "Page.disable":
        if (sessionId !== undefined) this.#dialogEars.delete(sessionId);
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
    const told = method === "Page.javascriptDialogOpening" ? withHandler(members) : members;
    this.#deliver(undefined, told, sessionId);
  }

  /** A client that goes away, or hangs, between the pause and its end would hold up everybody who waits for the page. */
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
    this.#downloadEars.delete(sessionId);
    this.#dialogEars.delete(sessionId);
    this.#settings.forgetSession(sessionId);
    const settled = this.#settled.get(sessionId);
    if (this.#settled.delete(sessionId)) this.#scene.processSettings.restore(settled);
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
      this.#held.push(() => this.#deliver(id, members, sessionId));
      if (this.#held.length === 1) void hiddenPage.opening.then(() => this.#tellHeld());
      return;
    }
    const told = hiddenPage ? hiddenPage.strip(members) : members;
    if (told) this.#tell(id, told, sessionId);
  }

  /** Goes on when it is known what not to tell of. */
  #tellHeld(): void {
    for (const tell of this.#held.splice(0)) tell();
  }

  #tell(id: number | undefined, members: Buffer, sessionId: string | undefined): void {
    if (this.left) return;
    const head = Buffer.from(id === undefined ? "{" : `{"id":${id},`);
    const tail = Buffer.from(sessionId === undefined ? "}" : `,"sessionId":${JSON.stringify(sessionId)}}`);
    const pieces = [head, members, tail];
    if (!this.outbox.push(members.length <= onePieceBytes ? [Buffer.concat(pieces)] : pieces)) this.leave("too_slow");
  }
}

/**
 * A headless shell says of its dialogs that nobody else answers them, at which clients with the DevTools in them dismiss
 * them at once. The session answers in the end.
 */
function withHandler(dialogOpening: Buffer): Buffer {
  const message = membersOf(dialogOpening);
  const told = { ...message, params: { ...message.params, hasBrowserHandler: true } };
  return Buffer.from(JSON.stringify(told).slice(1, -1));
}

/** Whether a setting was refused for that of another session in the same process. */
function isInEffect(answer: UserAnswer): boolean {
  return "bytes" in answer && answer.bytes.includes("override is already in effect");
}

/** The boundary where the protocol's word is taken for what a message holds. */
function membersOf(members: Buffer): { readonly params?: Params; readonly result?: Params } {
  return JSON.parse(`{${members.toString()}}`);
}
