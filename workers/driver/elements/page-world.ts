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

/** Functions that our scripts expose in a document. The script `page` exposes all of them. */
export type PageScript = typeof pageFunctions;

/** Page and deadline of a command that acts on elements. */
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

/** Result of a call if the world lacks the script, because the context id belongs to another world by now. */
const absent = "absent";

/** Isolated world of a frame's document, with the scripts that were loaded into it. */
interface World {
  readonly contextId: number;
  readonly loaded: Set<ScriptName>;
}

/**
 * Scripts by name. Each script has its own state. `page` also has the functions of the other two, and is about four
 * times as large as either of them.
 */
const scripts = { document: documentScript, content: contentScript, page: pageScript };

type ScriptName = keyof typeof scripts;

/** Worlds by session and frame id. */
const worlds = new WeakMap<CdpSession, Map<string, World>>();

const secret = crypto.randomUUID();

const documentNames: Readonly<Record<keyof typeof documentFunctions, true>> = {
  forgetDocument: true,
  frameHolder: true,
  quiet: true,
  readDocument: true,
};

const contentNames: Readonly<Record<keyof typeof contentFunctions, true>> = {
  contentHolder: true,
  documentContent: true,
  doubtfulOfContent: true,
  forgetContent: true,
  keepClosedOfContent: true,
};

/** Returns the scripts that have a function, the smallest first. */
const scriptsWith = (name: keyof PageScript): readonly [ScriptName, ...ScriptName[]] => {
  if (Object.hasOwn(documentNames, name)) return ["document", "page"];
  return Object.hasOwn(contentNames, name) ? ["content", "page"] : ["page"];
};

/** Thrown if the document was replaced, or its frame removed. */
export class DocumentReplaced extends Error {}

export class InvalidSelector extends Error {}

/** A remote object in the page, passed to our script as an argument. */
export class HeldObject {
  readonly objectId: string;

  constructor(objectId: string) {
    this.objectId = objectId;
  }
}

type Answer = Awaited<ReturnType<typeof callScript>>;

export function mainFrame({ sessionPage }: Pick<ElementScene, "sessionPage">): FrameSession {
  return { cdp: sessionPage.cdp, frameId: sessionPage.targetId, isMain: true };
}

export function childFrame({ sessionPage }: Pick<ElementScene, "sessionPage">, frameId: string): FrameSession {
  return { cdp: sessionPage.cdpOf(frameId), frameId, isMain: false };
}

/**
 * Calls a function of our scripts in the frame's current document. Loads the script if necessary, and returns the
 * resolved value. Throws `DocumentReplaced` or `InvalidSelector`.
 */
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

/**
 * Registers a closed shadow root by calling `name`. `host` and `root` must be objects of the isolated world of our
 * scripts.
 */
export async function keepClosed(
  { progress }: Pick<ElementScene, "progress">,
  frame: FrameSession,
  name: "keepClosed" | "keepClosedOfContent",
  host: HeldObject,
  root: HeldObject,
): Promise<void> {
  await call(progress, frame, { name, args: [host, root], byValue: true });
}

/**
 * Returns the execution context id of the isolated world in which the frame's scripts run. Undefined if no world is
 * known.
 */
export function worldOf(frame: FrameSession): number | undefined {
  return worldsOf(frame).get(frame.frameId)?.contextId;
}

/** Same as `callPage`, but returns a remote object. If the object has an `objectId`, the caller must release it. */
export function callForObject<Name extends keyof PageScript>(
  { progress }: Pick<ElementScene, "progress">,
  frame: FrameSession,
  name: Name,
  ...args: Parameters<PageScript[Name]>
): Promise<Answer> {
  return call(progress, frame, { name, args, byValue: false });
}

/**
 * Calls a function of our scripts. Returns undefined if no script with the function is loaded, or if the document or
 * page is gone.
 */
export async function callIfLoaded<
  Name extends "release" | "title" | "coverFields" | "uncoverFields" | "markedBoxes" | "viewState",
>(
  { progress }: Pick<ElementScene, "progress">,
  frame: FrameSession,
  name: Name,
  ...args: Parameters<PageScript[Name]>
): Promise<ReturnType<PageScript[Name]> | undefined> {
  const answer = await callLoaded(progress, frame, { name, args, byValue: true });
  // The boundary where the result of our script gets its type.
  return answer?.value as ReturnType<PageScript[Name]> | undefined;
}

/**
 * Evaluates an expression in the world of the frame's scripts. Returns undefined if the evaluation was stopped after
 * `timeoutMs`. Throws `DocumentReplaced` if no script is loaded or the document was replaced.
 */
export async function evaluateInWorld(
  { progress }: Pick<ElementScene, "progress">,
  frame: FrameSession,
  expression: string,
  timeoutMs: number,
): Promise<unknown> {
  const world = worldsOf(frame).get(frame.frameId);
  if (world) {
    // Another world may have the context id by now. Only our world has a global of this name.
    const guarded = `globalThis[${JSON.stringify(holderNameOf(frame))}] ? (${expression}) : ${JSON.stringify(absent)}`;
    const options = { contextId: world.contextId, returnByValue: true, timeout: timeoutMs };
    const evaluated = frame.cdp.send("Runtime.evaluate", { ...options, expression: guarded });
    const answer = await progress.race(evaluated).catch((thrown: unknown) => ifStopped(frame, thrown));
    if (answer === "terminated") return undefined;
    if (answer?.exceptionDetails) {
      const { exception, text } = answer.exceptionDetails;
      throw new Error(`failed to evaluate: ${exception?.description ?? text}`);
    }
    if (answer && answer.result.value !== absent) return answer.result.value;
    dropWorld(frame, world);
  }
  throw new DocumentReplaced("the document was replaced");
}

/**
 * Returns `terminated` if the evaluation was stopped, and undefined if the document was replaced. Rethrows other
 * errors.
 */
function ifStopped(frame: FrameSession, thrown: unknown): "terminated" | undefined {
  if (thrown instanceof Error && /Execution was terminated/.test(thrown.message)) return "terminated";
  if (isDocumentReplaced(thrown)) return undefined;
  throw toPageError(frame, thrown);
}

interface PageCall {
  readonly name: keyof PageScript;
  /** Held objects are passed by reference. */
  readonly args: readonly unknown[];
  readonly byValue: boolean;
}

async function call(progress: Progress, frame: FrameSession, pageCall: PageCall): Promise<Answer> {
  const known = (await callLoaded(progress, frame, pageCall)) ?? (await loadAndCall(progress, frame, pageCall));
  if (known) return known;
  const [script] = scriptsWith(pageCall.name);
  try {
    const named = { frameId: frame.frameId, worldName: ownWorld };
    const { executionContextId } = await progress.race(frame.cdp.send("Page.createIsolatedWorld", named));
    const world = { contextId: executionContextId, loaded: new Set([script]) };
    worldsOf(frame).set(frame.frameId, world);
    return await callScript(
      progress,
      frame,
      world,
      pageCall,
      `(globalThis[name] ??= {}).${script} ??= ${scripts[script]}`,
    );
  } catch (thrown) {
    throw toPageError(frame, thrown);
  }
}

/**
 * Converts an error: to `DocumentReplaced` if the document or its frame is gone, to a page failure if the page is
 * closed. Returns other errors unchanged.
 */
function toPageError({ isMain }: FrameSession, thrown: unknown): unknown {
  if (isDocumentReplaced(thrown) || (!isMain && isTargetClosed(thrown))) {
    return new DocumentReplaced("the document was replaced", { cause: thrown });
  }
  return isTargetClosed(thrown) ? closedFailure() : thrown;
}

/**
 * Calls the function in a script that is already loaded. Returns undefined if no script with the function is loaded, or
 * if the document is gone.
 */
async function callLoaded(progress: Progress, frame: FrameSession, pageCall: PageCall): Promise<Answer | undefined> {
  const world = worldsOf(frame).get(frame.frameId);
  const script = scriptsWith(pageCall.name).find((each) => world?.loaded.has(each));
  return world && script && callInWorld(progress, frame, world, pageCall, `globalThis[name]?.${script}`);
}

/**
 * Loads the smallest script with the function into the document's world, and calls the function. Returns undefined if
 * the document has no world or is gone.
 */
async function loadAndCall(progress: Progress, frame: FrameSession, pageCall: PageCall): Promise<Answer | undefined> {
  const world = worldsOf(frame).get(frame.frameId);
  const [script] = scriptsWith(pageCall.name);
  world?.loaded.add(script);
  const loading = `globalThis[name] && (globalThis[name].${script} ??= ${scripts[script]})`;
  return world && callInWorld(progress, frame, world, pageCall, loading);
}

/**
 * Calls a function in an isolated world. If the document was replaced or lacks the script, drops the cached world and
 * returns undefined.
 */
async function callInWorld(progress: Progress, frame: FrameSession, world: World, pageCall: PageCall, script: string) {
  const answer = await callScript(progress, frame, world, pageCall, script).catch(ignoreGone);
  if (answer && answer.value !== absent) return answer;
  dropWorld(frame, world);
  return undefined;
}

/** Drops a cached world, unless another call has already cached the world of the next document. */
function dropWorld(frame: FrameSession, world: World): void {
  const known = worldsOf(frame);
  if (known.get(frame.frameId) === world) known.delete(frame.frameId);
}

function worldsOf({ cdp }: FrameSession): Map<string, World> {
  const known = worlds.get(cdp) ?? new Map<string, World>();
  worlds.set(cdp, known);
  return known;
}

/**
 * Returns the name of the global that holds a frame's scripts. Another process may reuse context ids, so a world is
 * ours only if it has the global.
 */
function holderNameOf({ frameId }: FrameSession): string {
  return `${frameId}-${secret}`;
}

/**
 * Calls a function of the script that the expression `script` returns. The source text does not depend on the document,
 * so each renderer process compiles it once. Compiling the script `page` takes at most 0.7 ms.
 */
async function callScript(
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
    arguments: [holderNameOf(frame), ...args].map((value) =>
      value instanceof HeldObject ? { objectId: value.objectId } : { value },
    ),
    executionContextId: contextId,
    awaitPromise: true,
    returnByValue: byValue,
  });
  const { result, exceptionDetails } = await progress.race(called);
  if (!exceptionDetails) return result;
  const message = exceptionDetails.exception?.description ?? exceptionDetails.text;
  if (message.startsWith("SyntaxError")) throw new InvalidSelector(message);
  throw new Error(`failed to run the page script: ${message}`);
}

/** Ignores that the document or target is gone, which the next call reports. Rethrows other errors. */
function ignoreGone(thrown: unknown): undefined {
  if (!isDocumentReplaced(thrown) && !isTargetClosed(thrown)) throw thrown;
}
