import type { CdpSession } from "../cdp/cdp-session.ts";
import type { Progress } from "./progress.ts";

/** A remote element, held in an isolated world. */
export interface PageElement<E extends Element> {
  readonly cdp: CdpSession;
  readonly objectId: string;
  /** Never set. Carries the element's type for the compiler. */
  readonly element?: E;
}

/** Calls a function on an element in its document. */
export async function callOn<E extends Element, Args extends readonly (number | string)[], Value>(
  { cdp, objectId }: PageElement<E>,
  act: (this: E, ...args: Args) => Value,
  args: Args,
  progress: Progress,
): Promise<Value> {
  const values = args.map((value) => ({ value }));
  const call = { objectId, functionDeclaration: String(act), arguments: values, returnByValue: true };
  const { result } = await progress.race(cdp.send("Runtime.callFunctionOn", call));
  // The boundary where the function's result gets its type.
  return result.value as Value;
}
