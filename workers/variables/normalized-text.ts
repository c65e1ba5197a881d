/** A text without separators, encodings and upper case. */
export interface NormalizedText {
  readonly text: string;
  /** For each UTF-16 unit of `text`, the start and the end of its source in the original text. */
  readonly starts: readonly number[];
  readonly ends: readonly number[];
}

/** Encoded characters, separators and markup. Lengths are bounded, so that matching takes linear time. */
const pieces =
  /(?<percent>(?:%[0-9a-f]{2})+)|\\u(?<unicode>[0-9a-f]{4})|\\x(?<byte>[0-9a-f]{2})|&#x(?<hex>[0-9a-f]{1,6});|&#(?<decimal>[0-9]{1,7});|&(?<named>amp|lt|gt|quot|apos|nbsp);|(?<tag><[a-z/!][^<>]{0,200}>)|(?<escaped>\\["\\/])|(?<dropped>[\s\p{Cc}\p{Cf}*_~`]+)/giu;

const named: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "" };

const last = 0x10_ff_ff;

/** Quoted strings of a page snapshot. */
const quoted = /"(?:[^"\\]|\\.)*"/g;

/**
 * Removes white space, invisible characters and markup, decodes percent, HTML, `\u` and `\x` codes and escaped quotes
 * and slashes, and converts to lower case. Of a page snapshot, only the quoted texts remain. A text that a page splits
 * into several elements is then contiguous.
 */
export function normalizeText(text: string, isSnapshot = false): NormalizedText {
  const out = { text: "", starts: [] as number[], ends: [] as number[] };
  const parts: string[] = [];
  const add = (written: string, start: number, end: number): void => {
    // If lower case has another length, the text keeps its case.
    const lower = written.toLowerCase();
    const shown = lower.length === written.length ? lower : written;
    parts.push(shown);
    const isCopy = shown.length === end - start;
    for (let index = 0; index < shown.length; index += 1) {
      out.starts.push(isCopy ? start + index : start);
      out.ends.push(isCopy ? start + index + 1 : end);
    }
  };
  const read = (from: number, to: number): void => {
    let at = from;
    for (const match of text.slice(from, to).matchAll(pieces)) {
      const start = from + match.index;
      add(text.slice(at, start), at, start);
      at = start + match[0].length;
      add(decoded(match), start, at);
    }
    add(text.slice(at, to), at, to);
  };
  if (!isSnapshot) read(0, text.length);
  else for (const { index, 0: whole } of text.matchAll(quoted)) read(index + 1, index + whole.length - 1);
  return { ...out, text: parts.join("") };
}

function decoded({ groups = {} }: RegExpExecArray): string {
  const { percent, unicode, byte, hex, decimal, named: name, escaped } = groups;
  if (percent !== undefined) return withoutSeparators(Buffer.from(percent.replaceAll("%", ""), "hex").toString());
  if (name !== undefined) return named[name.toLowerCase()] ?? "";
  if (escaped !== undefined) return escaped.slice(1);
  const digits = unicode ?? byte ?? hex;
  const code = digits === undefined ? Number(decimal ?? Number.NaN) : Number.parseInt(digits, 16);
  return code <= last ? withoutSeparators(String.fromCodePoint(code)) : "";
}

const withoutSeparators = (text: string): string => text.replace(/[\s\p{Cc}\p{Cf}*_~`]+/gu, "");
