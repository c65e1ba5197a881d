import type { FrameLocator, Locator, Page } from "playwright-core";
import { failFields } from "../../src/platform/errors.ts";

/** An element that a request names, and where in the request. */
export interface Aim {
  readonly selector: string;
  /** Selectors of the frames that lead to it, from the outside in. */
  readonly frame: readonly string[];
  /** Path of the message that holds `selector` and `frame`, such as `action`. Empty at the top level. */
  readonly path: string;
}

/** Playwright chains engines with `>>`; CSS knows it only inside strings. */
const stringsAndEscapes = /\\[\s\S]|"(?:\\[\s\S]|[^"\\])*"|'(?:\\[\s\S]|[^'\\])*'/g;

/** Locates the first visible match. It waits for one: an element that nobody sees cannot be acted on. */
export function locateVisible(page: Page, aim: Aim): Locator {
  return matches(page, aim).filter({ visible: true }).first();
}

/** Locates the first match, visible or not. */
export function locateFirst(page: Page, aim: Aim): Locator {
  return matches(page, aim).first();
}

/** Every selector of an aim, with the path of its field. */
export function selectorsOf(aim: Aim): { selector: string; field: string }[] {
  const prefix = aim.path === "" ? "" : `${aim.path}.`;
  return [
    ...aim.frame.map((selector, index) => ({ selector, field: `${prefix}frame[${index}]` })),
    { selector: aim.selector, field: `${prefix}selector` },
  ];
}

/** Gives a selector in the form in which Playwright takes it for CSS and nothing else. */
export function css(selector: string, field: string): string {
  if (selector.replaceAll(stringsAndEscapes, "").includes(">>")) throw notParsed(field);
  return `css=${selector}`;
}

/** What is answered to a selector that is not CSS. */
export function notParsed(field: string): Error {
  return failFields("validation-failed", { [field]: "is not a CSS selector" });
}

function matches(page: Page, aim: Aim): Locator {
  const selectors = selectorsOf(aim).map(({ selector, field }) => css(selector, field));
  const own = selectors.pop() ?? "";
  let place: Page | FrameLocator = page;
  for (const frame of selectors) {
    const element: Locator = place.locator(frame);
    place = element.filter({ visible: true }).first().contentFrame();
  }
  return place.locator(own);
}
