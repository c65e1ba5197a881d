import type { CdpSession } from "../../cdp/cdp-session.ts";
import { isDocumentLeft, isTargetClosed } from "../../cdp/target-faults.ts";
import { type PageScript, pageScript } from "../../injected/page-script.ts";
import { ownWorld } from "../../pages/own-world.ts";
import type { Progress } from "../../pages/progress.ts";
import type { SessionPage } from "../../pages/session-page.ts";
import { closedFailure } from "../../pages/tab.ts";

/** What is needed to have to do with the elements of a page. */
export interface ElementScene {
  readonly sessionPage: SessionPage;
  readonly progress: Progress;
}

/** A frame of a page, with our session of the process that shows it. */
export interface Frame {
  readonly cdp: CdpSession;
  readonly frameId: string;
  readonly isMain: boolean;
}

/** What a script is called by that is not there: the id of its world is that of another one now. */
const absent = "absent";

/**
 * Where the script of a frame's document is. Another process gives the same ids to other worlds: only where the script is
 * found under its own name, which is no other's, is the world the one that was meant.
 */
interface Home {
  readonly contextId: number;
  readonly name: string;
}

const homes = new WeakMap<CdpSession, Map<string, Home>>();

/** The document, or the frame, has gone: there is another one, or there will be. */
export class DocumentLeft extends Error {}

/** A selector is none. */
export class InvalidSelector extends Error {}

/** An object that stays in the page, which a function of our script is given as an argument. */
export class HeldObject {
  readonly objectId: string;

  constructor(objectId: string) {
    this.objectId = objectId;
  }
}

type Answer = Awaited<ReturnType<typeof ask>>;

/** The frame of a page in which all others are. */
export function mainFrame({ sessionPage }: Pick<ElementScene, "sessionPage">): Frame {
  return { cdp: sessionPage.cdp, frameId: sessionPage.targetId, isMain: true };
}

/** A frame that an element of another one holds. */
export function childFrame({ sessionPage }: Pick<ElementScene, "sessionPage">, frameId: string): Frame {
  return { cdp: sessionPage.cdpOf(frameId), frameId, isMain: false };
}

/** Calls a function of our script in the document that a frame shows now, and gives what it resolves with. */
export async function callPage<Name extends keyof PageScript>(
  { progress }: Pick<ElementScene, "progress">,
  frame: Frame,
  name: Name,
  ...args: Parameters<PageScript[Name]>
): Promise<Awaited<ReturnType<PageScript[Name]>>> {
  const { value } = await call(progress, frame, { name, args, byValue: true });
  // The boundary where what our own script gives gets its type.
  return value as Awaited<ReturnType<PageScript[Name]>>;
}

/** Runs a function of somebody else's there; it knows nothing but what it is given, functions among it. */
export async function runInPage<Args extends unknown[], Value>(
  { progress }: Pick<ElementScene, "progress">,
  frame: Frame,
  work: (...args: Args) => Value,
  ...args: Args
): Promise<Value> {
  const { value } = await call(progress, frame, { name: "run", args: [work, ...args], byValue: true });
  // The same boundary.
  return value as Value;
}

/** The same for an object that stays in the page: it has to be released. */
export function runForObject<Args extends unknown[]>(
  { progress }: Pick<ElementScene, "progress">,
  frame: Frame,
  work: (...args: Args) => unknown,
  ...args: Args
): Promise<Answer> {
  return call(progress, frame, { name: "run", args: [work, ...args], byValue: false });
}

/** Has the script of a document look into a closed shadow root from now on; both are objects of its own world. */
export async function keepClosed(
  { progress }: Pick<ElementScene, "progress">,
  frame: Frame,
  host: HeldObject,
  root: HeldObject,
): Promise<void> {
  await call(progress, frame, { name: "keepClosed", args: [host, root], byValue: true });
}

/** Which world the script of a frame's document is in; undefined while it is in none. */
export function worldOf(frame: Frame): number | undefined {
  return homesOf(frame).get(frame.frameId)?.contextId;
}

/** The same, for an element that stays in the page: it has to be released. */
export function callForObject<Name extends keyof PageScript>(
  { progress }: Pick<ElementScene, "progress">,
  frame: Frame,
  name: Name,
  ...args: Parameters<PageScript[Name]>
): Promise<Answer> {
  return call(progress, frame, { name, args, byValue: false });
}

/** Calls a function of our script where that is in the document already; undefined where it is not. */
export async function callIfKnown<Name extends "release" | "title" | "coverFields" | "uncoverFields">(
  { progress }: Pick<ElementScene, "progress">,
  frame: Frame,
  name: Name,
): Promise<ReturnType<PageScript[Name]> | undefined> {
  const answer = await callKnown(progress, frame, { name, args: [], byValue: true });
  // The same boundary.
  return answer?.value as ReturnType<PageScript[Name]> | undefined;
}

/** A call of a function of our script. */
interface PageCall {
  readonly name: keyof PageScript;
  /** Functions among them run in the page, and know nothing but what they are given; objects that are held are there. */
  readonly args: readonly unknown[];
  readonly byValue: boolean;
}

async function call(progress: Progress, frame: Frame, wanted: PageCall): Promise<Answer> {
  const known = await callKnown(progress, frame, wanted);
  if (known) return known;
  try {
    const world = { frameId: frame.frameId, worldName: ownWorld };
    const { executionContextId } = await progress.race(frame.cdp.send("Page.createIsolatedWorld", world));
    const home = { contextId: executionContextId, name: crypto.randomUUID() };
    homesOf(frame).set(frame.frameId, home);
    return await ask(progress, frame, home, `globalThis[home] = ${pageScript}`, wanted);
  } catch (thrown) {
    throw asked(frame, thrown);
  }
}

/** What a question has come to whose document has gone, in a frame with a process of its own or with its page. */
function asked({ isMain }: Frame, thrown: unknown): unknown {
  if (isDocumentLeft(thrown) || (!isMain && isTargetClosed(thrown))) {
    return new DocumentLeft("the document was left", { cause: thrown });
  }
  return isTargetClosed(thrown) ? closedFailure() : thrown;
}

/** Calls the script that is in the document already; undefined when it is not. */
async function callKnown(progress: Progress, frame: Frame, wanted: PageCall): Promise<Answer | undefined> {
  const home = homesOf(frame).get(frame.frameId);
  if (!home) return undefined;
  const answer = await ask(progress, frame, home, "globalThis[home]", wanted).catch(unlessGone);
  if (answer && answer.value !== absent) return answer;
  homesOf(frame).delete(frame.frameId);
  return undefined;
}

function homesOf({ cdp }: Frame): Map<string, Home> {
  const known = homes.get(cdp) ?? new Map<string, Home>();
  homes.set(cdp, known);
  return known;
}

/**
 * Calls a function of the script that an expression gives. The same text calls the same function in every document, so the
 * browser compiles it once for each of its processes: the whole script takes it 0.7 ms.
 */
async function ask(
  progress: Progress,
  { cdp }: Frame,
  { contextId, name: home }: Home,
  script: string,
  { name, args, byValue }: PageCall,
) {
  const values = args.filter((argument) => typeof argument !== "function");
  const passed = args.map((argument) => (typeof argument === "function" ? `(${argument})` : "values.shift()"));
  const functionDeclaration = `(home, ...values) => {
    const script = ${script};
    return script ? script.${name}(${passed.join(", ")}) : ${JSON.stringify(absent)};
  }`;
  const called = cdp.send("Runtime.callFunctionOn", {
    functionDeclaration,
    arguments: [home, ...values].map((value) =>
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
  throw new Error(`our script has failed in the page: ${complaint}`);
}

/** What is said of a target that has closed is said again when it is asked anew. */
function unlessGone(thrown: unknown): undefined {
  if (!isDocumentLeft(thrown) && !isTargetClosed(thrown)) throw thrown;
}
