import type { CdpSession } from "../cdp/cdp-session.ts";
import type { Progress } from "./progress.ts";

/** An element of a document, held in a world that is not the page's. */
export interface PageElement<E extends Element> {
  readonly cdp: CdpSession;
  readonly objectId: string;
  /** Never there: which element it is, for the compiler. */
  readonly element?: E;
}

/** Calls a function of ours on an element, in its document. */
export async function callOn<E extends Element, Args extends readonly (number | string)[], Value>(
  { cdp, objectId }: PageElement<E>,
  act: (this: E, ...args: Args) => Value,
  args: Args,
  progress: Progress,
): Promise<Value> {
  const values = args.map((value) => ({ value }));
  const call = { objectId, functionDeclaration: String(act), arguments: values, returnByValue: true };
  const { result } = await progress.race(cdp.send("Runtime.callFunctionOn", call));
  // The boundary where what our own function gives gets its type.
  return result.value as Value;
}
