import { type Failure, failFields } from "../../../src/platform/errors.ts";
import type { Named } from "../../injected/page-refs.ts";

/** An element that a request names, and where in the request. */
export interface Aim {
  readonly selector: Named;
  /** What names the frames that lead to it, from the outside in. */
  readonly frame: readonly Named[];
  /** Path of the message that holds `selector` and `frame`, such as `action`. Empty at the top level. */
  readonly path: string;
}

/** Every selector of an aim, with the path of its field. */
export function selectorsOf(aim: Aim): { selector: Named; field: string }[] {
  const prefix = aim.path === "" ? "" : `${aim.path}.`;
  return [
    ...aim.frame.map((selector, index) => ({ selector, field: `${prefix}frame[${index}]` })),
    { selector: aim.selector, field: `${prefix}selector` },
  ];
}

/** Aims at no more than a frame. */
export function wholeFrame(frame: readonly string[], path: string): Aim {
  return { selector: ":root", frame, path };
}

/** What is answered to a selector that is not CSS. */
export function notParsed(field: string): Failure {
  return failFields("validation-failed", { [field]: "is not a CSS selector" });
}

/** What the element of an aim is called where something is said of it. */
export function subjectOf({ selector }: Aim): string {
  return typeof selector === "string" ? `the element ${quoted(selector)}` : `s${selector.epoch}e${selector.number}`;
}

/** Characters of a selector that an error repeats. */
const longestQuoted = 120;

/** Returns a selector as an error names it. */
export function quoted(selector: string): string {
  return `\`${selector.length > longestQuoted ? `${selector.slice(0, longestQuoted)}...` : selector}\``;
}
