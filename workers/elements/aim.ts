import { type Failure, failFields } from "../../src/platform/errors.ts";

/** An element that a request names, and where in the request. */
export interface Aim {
  readonly selector: string;
  /** Selectors of the frames that lead to it, from the outside in. */
  readonly frame: readonly string[];
  /** Path of the message that holds `selector` and `frame`, such as `action`. Empty at the top level. */
  readonly path: string;
}

/** Every selector of an aim, with the path of its field. */
export function selectorsOf(aim: Aim): { selector: string; field: string }[] {
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
