import { type Failure, failFields } from "../../../src/platform/errors.ts";
import type { Named } from "../../injected/page-refs.ts";

/** Identifies an element of a page. */
export interface Locator {
  readonly selector: Named;
  /** Selectors or references of the enclosing frames, outermost first. */
  readonly frame: readonly Named[];
  /**
   * Path of the request's field that contains `selector` and `frame`, such as `action`. Empty if the request itself
   * contains them.
   */
  readonly path: string;
}

/**
 * Returns the selectors or references of the frames, outermost first, and of the element, each with the path of its
 * field.
 */
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

/** Returns the subject of an error message about the element. */
export function subjectOf({ selector }: Locator): string {
  return typeof selector === "string" ? `the element ${quoted(selector)}` : `s${selector.epoch}e${selector.number}`;
}

/** Maximum characters of a selector in an error message. */
const longestQuoted = 120;

/** Returns a selector in backquotes, shortened for an error message. */
export function quoted(selector: string): string {
  return `\`${selector.length > longestQuoted ? `${selector.slice(0, longestQuoted)}...` : selector}\``;
}
