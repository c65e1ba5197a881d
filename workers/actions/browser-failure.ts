import { errors, type Page } from "playwright-core";
import { within } from "../../src/platform/deadline.ts";
import { Failure, fail } from "../../src/platform/errors.ts";
import { type Aim, css, locateFirst, notParsed, selectorsOf } from "./selectors.ts";

/** How long finding out more about a failure may take: less than the grace that a command has after its timeout. */
const inquiryMs = 120;

const detailLength = 300;

/** Colours of Playwright's call log. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the escape character is what is looked for
const colours = /\u001b\[\d+m/g;

const crashed = /(?:Target|Page) crashed/;
const closed = /(?:Target page, context or browser|Target|Browser|Page|Frame) (?:has been closed|closed|was detached)/;
const performed = /performing \w+ action/;
const netErrorPattern = /net::(ERR_[A-Z0-9_]+)/;
const notCss =
  /while parsing (?:css )?selector|is not a valid selector|Unknown pseudo-class|Malformed selector|unexpected symbol/i;

/** Turns what Playwright threw while it acted on an element into the failure that the client sees. */
export async function elementFailure(thrown: unknown, page: Page, aims: readonly Aim[]): Promise<Failure> {
  const failure = pageFailure(thrown);
  if (failure) return failure;
  const message = messageOf(thrown);
  if (notCss.test(message)) return blameSelector(page, aims);
  if (isTimeout(thrown)) return fail("session-timeout", {}, { detail: await explainTimeout(message, page, aims) });
  return fail("driver-error", {}, { detail: firstLine(message), cause: thrown });
}

/** Recognises failures of the page as a whole: it has crashed, gone or cannot be reached. */
export function pageFailure(thrown: unknown): Failure | undefined {
  if (thrown instanceof Failure) return thrown;
  const message = messageOf(thrown);
  if (crashed.test(message)) return crashedFailure();
  const netError = netErrorOf(thrown);
  if (netError !== undefined) return netFailure(netError);
  if (closed.test(message)) return fail("driver-error", { target_closed: true }, { detail: "the page has closed" });
  return undefined;
}

/** Whether a page has closed when an action had reached it already, as a popup does by a button of its own. */
export function hasClosedByIt(thrown: unknown, page: Page, aims: readonly Aim[]): boolean {
  const message = messageOf(thrown);
  const isPerformed = aims.length === 0 || performed.test(message);
  return closed.test(message) && isPerformed && page.context().browser()?.isConnected() === true;
}

/** What is answered while the renderer of a page is gone. */
export function crashedFailure(): Failure {
  const detail = "the page has crashed; the next navigate starts it anew";
  return fail("driver-error", { target_crashed: true }, { detail });
}

/** What is answered to a page that cannot be reached; where the session's proxy is at fault, with what it did. */
export function netFailure(netError: string, proxyFault?: string): Failure {
  const why = proxyFault === undefined ? netError : `the session's proxy ${proxyFault}`;
  return fail("driver-error", { net_error: netError }, { detail: `the page cannot be reached: ${why}` });
}

/** Chromium's name for why a load failed, if that is what was thrown. */
export function netErrorOf(thrown: unknown): string | undefined {
  return netErrorPattern.exec(messageOf(thrown))?.[1];
}

/** Whether Playwright has given up at its timeout. */
export function isTimeout(thrown: unknown): boolean {
  return thrown instanceof errors.TimeoutError;
}

/** What Playwright said, without colours. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message.replaceAll(colours, "") : String(thrown);
}

/** The sentence of what Playwright said, without its call log and the name of its method. */
function firstLine(message: string): string {
  const [line = ""] = message.split("\n");
  return line
    .replace(/^[a-zA-Z]+\.[a-zA-Z]+: /, "")
    .slice(0, detailLength)
    .toWellFormed();
}

/** Finds which of several selectors does not parse, by trying each alone. */
async function blameSelector(page: Page, aims: readonly Aim[]): Promise<Failure> {
  const selectors = aims.flatMap(selectorsOf);
  for (const { selector, field } of selectors) {
    const complaint = page
      .locator(css(selector, field))
      .count()
      .then(() => "", messageOf);
    if (notCss.test(await within(complaint, inquiryMs, ""))) return asFailureOf(notParsed(field));
  }
  return asFailureOf(notParsed(selectors.at(-1)?.field ?? "selector"));
}

function asFailureOf(error: Error): Failure {
  return error instanceof Failure ? error : fail("internal", {}, { cause: error });
}

/** What Playwright's log says last of an element that could not be acted on, and how we say it. */
const hindrances: readonly (readonly [RegExp, (match: RegExpMatchArray) => string])[] = [
  // From the line's beginning: the log quotes selectors too, and one full of `<` would be tried from each of them.
  [/^[^<\n]*(<[^\n]{1,200}>)[^\n]*intercepts pointer events/gm, ([, cover]) => `the element is covered by ${cover}`],
  [/element is not enabled/g, () => "the element is disabled"],
  [/element is not stable/g, () => "the element keeps moving"],
  [/element is not editable/g, () => "the element is read-only"],
  [/element is not visible/g, () => "the element is not visible"],
  [/element is outside of the viewport/g, () => "the element is outside of the viewport"],
  [/element was detached from the DOM/g, () => "the element has left the page"],
  [/did not find some options/g, () => "the element does not have all of these options"],
];

async function explainTimeout(message: string, page: Page, aims: readonly Aim[]): Promise<string> {
  return lastHindrance(message.slice(message.indexOf("\n"))) ?? explainAbsence(page, aims);
}

/** Says what Playwright's log names last as being in the way. */
export function lastHindrance(log: string): string | undefined {
  let last: { at: number; sentence: string } | undefined;
  for (const [pattern, say] of hindrances) {
    const match = [...log.matchAll(pattern)].at(-1);
    if (match && (last === undefined || match.index > last.at)) last = { at: match.index, sentence: say(match) };
  }
  return last?.sentence;
}

async function explainAbsence(page: Page, aims: readonly Aim[]): Promise<string> {
  for (const aim of aims) {
    const [outermost] = selectorsOf(aim);
    if (outermost && aim.frame.length > 0) {
      const found = await countWithin(page, { selector: outermost.selector, frame: [], path: aim.path });
      if (found === 0) return `no element matches ${outermost.field}`;
    }
    const found = await countWithin(page, aim);
    if (found === undefined) return "the page does not answer";
    if (found === 0) return "no element matches the selector";
    const isVisible = await within(locateFirst(page, aim).isVisible(), inquiryMs, true);
    if (!isVisible) return "the element is not visible";
  }
  return "the element was not ready in time";
}

function countWithin(page: Page, aim: Aim): Promise<number | undefined> {
  return within(locateFirst(page, aim).count(), inquiryMs, undefined);
}
