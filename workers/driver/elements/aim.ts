import { type Failure, failFields } from "../../../src/platform/errors.ts";
import type { Named } from "../../injected/page-refs.ts";

/** An element that a request names, with its path in the request. */
export interface Aim {
  readonly selector: Named;
  /** Selectors or references of the enclosing frames, outermost first. */
  readonly frame: readonly Named[];
  /** Path of the message that holds `selector` and `frame`, such as `action`. Empty at the top level. */
  readonly path: string;
}

/** Returns every selector of an aim with the path of its field. */
export function selectorsOf(aim: Aim): { selector: Named; field: string }[] {
  const prefix = aim.path === "" ? "" : `${aim.path}.`;
  return [
    ...aim.frame.map((selector, index) => ({ selector, field: `${prefix}frame[${index}]` })),
    { selector: aim.selector, field: `${prefix}selector` },
  ];
}

export function wholeFrame(frame: readonly string[], path: string): Aim {
  return { selector: ":root", frame, path };
}

/** Creates the failure for an invalid CSS selector. */
export function notParsed(field: string): Failure {
  return failFields("validation-failed", { [field]: "is not a CSS selector" });
}

/** Returns the name of the element in error messages. */
export function subjectOf({ selector }: Aim): string {
  return typeof selector === "string" ? `the element ${quoted(selector)}` : `s${selector.epoch}e${selector.number}`;
}

/** Maximum characters of a selector in an error. */
const longestQuoted = 120;

/** Returns a selector in backquotes, shortened for an error message. */
export function quoted(selector: string): string {
  return `\`${selector.length > longestQuoted ? `${selector.slice(0, longestQuoted)}...` : selector}\``;
}
