import { contentScript } from "../../../src/gen/injected/content-script.ts";
import { documentScript } from "../../../src/gen/injected/document-script.ts";
import { pageScript } from "../../../src/gen/injected/page-script.ts";
import type { CdpSession } from "../../cdp/cdp-session.ts";
import { isDocumentReplaced, isTargetClosed } from "../../cdp/target-faults.ts";
import type * as contentFunctions from "../../injected/content-script.ts";
import type * as documentFunctions from "../../injected/document-script.ts";
import type * as pageFunctions from "../../injected/page-script.ts";
import { ownWorld } from "../../pages/own-world.ts";
import type { Progress } from "../../pages/progress.ts";
import type { SessionPage } from "../../pages/session-page.ts";
import { closedFailure } from "../../pages/tab.ts";

/** Functions that our script exposes in a document. */
export type PageScript = typeof pageFunctions;

export interface ElementScene {
  readonly sessionPage: SessionPage;
  readonly progress: Progress;
}

/** A frame with the CDP session of its process. */
export interface FrameSession {
  readonly cdp: CdpSession;
  readonly frameId: string;
  readonly isMain: boolean;
}

/** Returned if the script is missing: its context id now belongs to another world. */
const absent = "absent";

/** Isolated world of a frame's document, with the scripts that it has. */
interface World {
  readonly contextId: number;
  readonly loaded: Set<ScriptName>;
}

/** Scripts, which keep their own state. The page's has the functions of the others, and is eight times as large. */
const scripts = { document: documentScript, content: contentScript, page: pageScript };

type ScriptName = keyof typeof scripts;

/** Worlds by frame. */
const worlds = new WeakMap<CdpSession, Map<string, World>>();

const secret = crypto.randomUUID();

const ofDocument: Readonly<Record<keyof typeof documentFunctions, true>> = {
  forgetDocument: true,
  frameHolder: true,
  quiet: true,
  readDocument: true,
};

const ofContent: Readonly<Record<keyof typeof contentFunctions, true>> = {
  contentHolder: true,
  documentContent: true,
  doubtfulOfContent: true,
  forgetContent: true,
  keepClosedOfContent: true,
};

/** Scripts that have a function, preferred ones first. */
const scriptsWith = (name: keyof PageScript): readonly [ScriptName, ...ScriptName[]] => {
  if (Object.hasOwn(ofDocument, name)) return ["document", "page"];
  return Object.hasOwn(ofContent, name) ? ["content", "page"] : ["page"];
};

/** The document or frame was replaced or removed. */
export class DocumentLeft extends Error {}

export class InvalidSelector extends Error {}

/** A remote object in the page, passed to our script as an argument. */
export class HeldObject {
  readonly objectId: string;

  constructor(objectId: string) {
    this.objectId = objectId;
  }
}

type Answer = Awaited<ReturnType<typeof ask>>;

export function mainFrame({ sessionPage }: Pick<ElementScene, "sessionPage">): FrameSession {
  return { cdp: sessionPage.cdp, frameId: sessionPage.targetId, isMain: true };
}

export function childFrame({ sessionPage }: Pick<ElementScene, "sessionPage">, frameId: string): FrameSession {
  return { cdp: sessionPage.cdpOf(frameId), frameId, isMain: false };
}

/** Calls a function of our script in the frame's current document and returns its resolved value. */
export async function callPage<Name extends keyof PageScript>(
  { progress }: Pick<ElementScene, "progress">,
  frame: FrameSession,
  name: Name,
  ...args: Parameters<PageScript[Name]>
): Promise<Awaited<ReturnType<PageScript[Name]>>> {
  const { value } = await call(progress, frame, { name, args, byValue: true });
  // The boundary where the result of our script gets its type.
  return value as Awaited<ReturnType<PageScript[Name]>>;
}

/** Registers a closed shadow root with the script that has a function. Both objects must be from the script's world. */
export async function keepClosed(
  { progress }: Pick<ElementScene, "progress">,
  frame: FrameSession,
  name: "keepClosed" | "keepClosedOfContent",
  host: HeldObject,
  root: HeldObject,
): Promise<void> {
  await call(progress, frame, { name, args: [host, root], byValue: true });
}

/** Returns the execution context id of the frame's scripts. Undefined if the document has none. */
export function worldOf(frame: FrameSession): number | undefined {
  return worldsOf(frame).get(frame.frameId)?.contextId;
}

/** Same as `callPage`, but returns a remote object, which the caller must release. */
export function callForObject<Name extends keyof PageScript>(
  { progress }: Pick<ElementScene, "progress">,
  frame: FrameSession,
  name: Name,
  ...args: Parameters<PageScript[Name]>
): Promise<Answer> {
  return call(progress, frame, { name, args, byValue: false });
}

/** Calls a function of our script if the document already has the script. Returns undefined if not. */
export async function callIfKnown<
  Name extends "release" | "title" | "coverFields" | "uncoverFields" | "markedBoxes" | "viewState",
>(
  { progress }: Pick<ElementScene, "progress">,
  frame: FrameSession,
  name: Name,
  ...args: Parameters<PageScript[Name]>
): Promise<ReturnType<PageScript[Name]> | undefined> {
  const answer = await callKnown(progress, frame, { name, args, byValue: true });
  // The boundary where the result of our script gets its type.
  return answer?.value as ReturnType<PageScript[Name]> | undefined;
}

/**
 * Evaluates an expression in the world of the frame's scripts, of which one must be loaded. Stops the evaluation after
 * `timeoutMs`, and returns undefined then.
 */
export async function evaluateInWorld(
  { progress }: Pick<ElementScene, "progress">,
  frame: FrameSession,
  expression: string,
  timeoutMs: number,
): Promise<unknown> {
  const world = worldsOf(frame).get(frame.frameId);
  if (world) {
    // Another world may have the context id by now. Only ours has the name.
    const guarded = `globalThis[${JSON.stringify(nameIn(frame))}] ? (${expression}) : ${JSON.stringify(absent)}`;
    const options = { contextId: world.contextId, returnByValue: true, timeout: timeoutMs };
    const evaluated = frame.cdp.send("Runtime.evaluate", { ...options, expression: guarded });
    const answer = await progress.race(evaluated).catch((thrown: unknown) => unlessEnded(frame, thrown));
    if (answer === "terminated") return undefined;
    if (answer?.exceptionDetails) {
      const { exception, text } = answer.exceptionDetails;
      throw new Error(`failed to evaluate: ${exception?.description ?? text}`);
    }
    if (answer && answer.result.value !== absent) return answer.result.value;
    forget(frame, world);
  }
  throw new DocumentLeft("the document was left");
}

/** Returns `terminated` for an evaluation that was stopped, and undefined for a document that is gone. */
function unlessEnded(frame: FrameSession, thrown: unknown): "terminated" | undefined {
  if (thrown instanceof Error && /Execution was terminated/.test(thrown.message)) return "terminated";
  if (isDocumentReplaced(thrown)) return undefined;
  throw asked(frame, thrown);
}

interface PageCall {
  readonly name: keyof PageScript;
  /** Held objects are passed by reference. */
  readonly args: readonly unknown[];
  readonly byValue: boolean;
}

async function call(progress: Progress, frame: FrameSession, wanted: PageCall): Promise<Answer> {
  const known = (await callKnown(progress, frame, wanted)) ?? (await callBeside(progress, frame, wanted));
  if (known) return known;
  const [script] = scriptsWith(wanted.name);
  try {
    const named = { frameId: frame.frameId, worldName: ownWorld };
    const { executionContextId } = await progress.race(frame.cdp.send("Page.createIsolatedWorld", named));
    const world = { contextId: executionContextId, loaded: new Set([script]) };
    worldsOf(frame).set(frame.frameId, world);
    return await ask(progress, frame, world, wanted, `(globalThis[name] ??= {}).${script} ??= ${scripts[script]}`);
  } catch (thrown) {
    throw asked(frame, thrown);
  }
}

/**
 * Converts an error: to `DocumentLeft` if the document or its frame is gone, to a page failure if the page is closed.
 */
function asked({ isMain }: FrameSession, thrown: unknown): unknown {
  if (isDocumentReplaced(thrown) || (!isMain && isTargetClosed(thrown))) {
    return new DocumentLeft("the document was left", { cause: thrown });
  }
  return isTargetClosed(thrown) ? closedFailure() : thrown;
}

/** Calls a script with the function if the document already has it. Returns undefined if not. */
async function callKnown(progress: Progress, frame: FrameSession, wanted: PageCall): Promise<Answer | undefined> {
  const world = worldsOf(frame).get(frame.frameId);
  const script = scriptsWith(wanted.name).find((each) => world?.loaded.has(each));
  return world && script && callIn(progress, frame, world, wanted, `globalThis[name]?.${script}`);
}

/** Loads a script into the world of another script, if the document has one, and calls it. */
async function callBeside(progress: Progress, frame: FrameSession, wanted: PageCall): Promise<Answer | undefined> {
  const world = worldsOf(frame).get(frame.frameId);
  const [script] = scriptsWith(wanted.name);
  world?.loaded.add(script);
  const loading = `globalThis[name] && (globalThis[name].${script} ??= ${scripts[script]})`;
  return world && callIn(progress, frame, world, wanted, loading);
}

/** Returns undefined, and forgets the world, if the document was left. */
async function callIn(progress: Progress, frame: FrameSession, world: World, wanted: PageCall, script: string) {
  const answer = await ask(progress, frame, world, wanted, script).catch(unlessGone);
  if (answer && answer.value !== absent) return answer;
  forget(frame, world);
  return undefined;
}

/** Forgets a world, unless another call has entered that of the next document meanwhile. */
function forget(frame: FrameSession, world: World): void {
  const known = worldsOf(frame);
  if (known.get(frame.frameId) === world) known.delete(frame.frameId);
}

function worldsOf({ cdp }: FrameSession): Map<string, World> {
  const known = worlds.get(cdp) ?? new Map<string, World>();
  worlds.set(cdp, known);
  return known;
}

/**
 * Returns the name of the object with a frame's scripts. Another process may reuse context ids, so a world counts only if
 * it has the object.
 */
function nameIn({ frameId }: FrameSession): string {
  return `${frameId}-${secret}`;
}

/**
 * Calls a function of the script that an expression returns. The text is the same for every document, so each browser
 * process compiles it once. Compiling the page's script takes at most 0.7 ms.
 */
async function ask(
  progress: Progress,
  frame: FrameSession,
  { contextId }: World,
  { name, args, byValue }: PageCall,
  script: string,
) {
  const functionDeclaration = `(name, ...values) => {
    const script = ${script};
    return script ? script.${name}(...values) : ${JSON.stringify(absent)};
  }`;
  const called = frame.cdp.send("Runtime.callFunctionOn", {
    functionDeclaration,
    arguments: [nameIn(frame), ...args].map((value) =>
      value instanceof HeldObject ? { objectId: value.objectId } : { value },
    ),
    executionContextId: contextId,
    awaitPromise: true,
    returnByValue: byValue,
  });
  const { result, exceptionDetails } = await progress.race(called);
  if (!exceptionDetails) return result;
  const complaint = exceptionDetails.exception?.description ?? exceptionDetails.text;
  if (complaint.startsWith("SyntaxError")) throw new InvalidSelector(complaint);
  throw new Error(`failed to run the page script: ${complaint}`);
}

/** Ignores that the document or target is gone, which the next call reports. */
function unlessGone(thrown: unknown): undefined {
  if (!isDocumentReplaced(thrown) && !isTargetClosed(thrown)) throw thrown;
}
