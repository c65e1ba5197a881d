import { type Failure, failFields } from "../../../src/platform/errors.ts";
import type { Named } from "../../injected/page-refs.ts";

/** An element that a request names. */
export interface Locator {
  readonly selector: Named;
  /** Selectors or references of the enclosing frames, outermost first. */
  readonly frame: readonly Named[];
  /**
   * Path of the request's message with the fields `selector` and `frame`, such as `action`. Empty for the request
   * itself.
   */
  readonly path: string;
}

/** Returns every selector of a locator with the path of its field, outermost frame first. */
export function selectorsOf(locator: Locator): { selector: Named; field: string }[] {
  const prefix = locator.path === "" ? "" : `${locator.path}.`;
  return [
    ...locator.frame.map((selector, index) => ({ selector, field: `${prefix}frame[${index}]` })),
    { selector: locator.selector, field: `${prefix}selector` },
  ];
}

/** Returns the locator of a frame's root element. An empty `frame` names the main frame. */
export function wholeFrame(frame: readonly string[], path: string): Locator {
  return { selector: ":root", frame, path };
}

/** Creates the failure for an invalid CSS selector. */
export function invalidSelectorFailure(field: string): Failure {
  return failFields("validation-failed", { [field]: "is not a CSS selector" });
}

/** Names the element in error messages. */
export function subjectOf({ selector }: Locator): string {
  return typeof selector === "string" ? `the element ${quoted(selector)}` : `s${selector.epoch}e${selector.number}`;
}

/** Maximum characters of a selector in an error. */
const longestQuoted = 120;

/** Returns a selector in backquotes, shortened for an error message. */
export function quoted(selector: string): string {
  return `\`${selector.length > longestQuoted ? `${selector.slice(0, longestQuoted)}...` : selector}\``;
}
