/* Rules for texts of pages. This is the only module of this folder that runs in the worker too. */

/** Normalizes the white space and case of a text for searches. */
export function plain(text: string): string {
  return text
    .replace(/[\s\u200b\u00ad]+/g, " ")
    .trim()
    .toLowerCase();
}

/** Whether the quoted parts of a snapshot line contain a text. The other parts are neither names nor values. */
export function says(line: string, text: string): boolean {
  const quoted = line.match(/"(?:[^"\\]|\\.)*"/g) ?? [];
  return quoted.some((each) => plain(JSON.parse(each)).includes(text));
}

/** Returns a page text as a JSON string. No other part of a line is quoted. */
export function quote(text: string, max: number): string {
  return JSON.stringify(tidy(text, max));
}

/** Returns a text on one line, without control and format characters that could reorder or hide other text. */
export function tidy(text: string, max: number): string {
  const plain = text
    .slice(0, 8 * max)
    .replace(/[\s\p{Cc}\p{Cf}]+/gu, " ")
    .trim();
  return plain.length > max ? `${plain.slice(0, max).toWellFormed()}…` : plain.toWellFormed();
}
