/* Rules for texts of pages. The worker also runs this module. */

/** Normalizes the white space and case of a text for searches. */
export function plain(text: string): string {
  return text
    .replace(/[\s\u200b\u00ad]+/g, " ")
    .trim()
    .toLowerCase();
}

/**
 * Maximum length of the lookahead: characters after a cut that are kept until secrets are masked, so that a secret that
 * extends beyond the cut is recognized. Enough for 8 characters of a secret that the page splits or encodes.
 */
export const maxLookahead = 96;

/** Marks around the lookahead: noncharacters of Unicode, which `cutText` removes from other text. */
export const lookaheadMarks = { start: "\ufdd0", end: "\ufdd1" } as const;

/** Cuts a text to `max` characters and appends the marked lookahead. A text that was cut before does not get longer. */
export function cutText(text: string, max: number): string {
  if (text.length <= max && !/[\ufdd0\ufdd1]/.test(text)) return text.toWellFormed();
  const whole = withoutMarks(text);
  const before = text.search(/\ufdd0[^\ufdd0\ufdd1]*\ufdd1/);
  const end = before < 0 ? max : Math.min(max, withoutMarks(text.slice(0, before)).length);
  if (whole.length <= end) return whole.toWellFormed();
  const at = /[\ud800-\udbff]/.test(whole.charAt(end - 1)) ? end - 1 : end;
  const lookahead = whole.slice(at, at + maxLookahead);
  return `${whole.slice(0, at)}${lookaheadMarks.start}${lookahead}${lookaheadMarks.end}`.toWellFormed();
}

const withoutMarks = (text: string): string => text.replace(/\ufdd1…?|\ufdd0/g, "");

/** Removes the lookahead of cut texts. */
export function withoutLookahead(text: string): string {
  return text.includes(lookaheadMarks.start) ? text.replace(/\ufdd0[^\ufdd0\ufdd1]*\ufdd1/g, "") : text;
}

/** Whether a quoted part of a snapshot line contains a text. Only quoted parts are texts of the page. */
export function hasQuotedText(line: string, text: string): boolean {
  const quoted = withoutLookahead(line).match(/"(?:[^"\\]|\\.)*"/g) ?? [];
  return quoted.some((each) => plain(JSON.parse(each)).includes(text));
}

/** Returns a page text as a JSON string. Other parts of a line are never quoted. */
export function quote(text: string, max: number): string {
  return JSON.stringify(tidy(text, max));
}

/** Matches most texts that are tidy already. */
const isTidy = /^(?:[!-~]+(?: [!-~]+)*)?$/;

/**
 * Returns a text on one line, without control and format characters, which could reorder or hide other text. A cut text
 * ends with its lookahead and `…`.
 */
export function tidy(text: string, max: number): string {
  if (text.length <= max && isTidy.test(text)) return text;
  const plain = text
    .slice(0, 8 * max)
    .replace(/[\s\p{Cc}\p{Cf}]+/gu, " ")
    .trim();
  const cut = cutText(plain, max);
  return cut.endsWith(lookaheadMarks.end) ? `${cut}…` : cut;
}
