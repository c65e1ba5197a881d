import { controlScript } from "../../src/gen/injected/control-script.ts";
import type { CdpSession } from "../cdp/cdp-session.ts";
import type * as controlFunctions from "../injected/control-script.ts";
import type { Progress } from "./progress.ts";

/** A remote object for an element, in an isolated world. */
export interface PageElement<E extends Element> {
  readonly cdp: CdpSession;
  readonly objectId: string;
  /** Never set. Carries the element's type for the compiler. */
  readonly element?: E;
}

type Functions = typeof controlFunctions;

/** Calls a function of the control script on an element. The script is loaded with each call. */
export async function callOn<Name extends Exclude<keyof Functions, "findOpen">>(
  { cdp, objectId }: PageElement<Parameters<Functions[Name]>[0]>,
  name: Name,
  args: (Parameters<Functions[Name]> extends [Element, ...infer Args] ? Args : never) & readonly (number | string)[],
  progress: Progress,
): Promise<ReturnType<Functions[Name]>> {
  const functionDeclaration = `function (...values) { return ${controlScript}.${name}(this, ...values); }`;
  const values = args.map((value) => ({ value }));
  const call = { objectId, functionDeclaration, arguments: values, returnByValue: true };
  const { result } = await progress.race(cdp.send("Runtime.callFunctionOn", call));
  // Cast: the result has the type that the function returns.
  return result.value as ReturnType<Functions[Name]>;
}
