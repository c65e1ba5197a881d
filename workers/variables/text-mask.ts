import { normalizeText } from "./normalized-text.ts";
import { type Match, type SecretText, TextAutomaton } from "./text-automaton.ts";

/** Minimum lengths of a secret's prefix that is masked where a text was cut, in plain and in normalized texts. */
const shortestPrefix = { plain: 4, normalized: 8 };

/** Minimum length of a text that may have been cut without a truncation mark. */
const shortestCut = 200;

/**
 * Replaces secret texts. The texts in `plain` are found as they are. The texts in `normalized` are results of
 * `normalizeText`, and are also found if a page splits or encodes their characters.
 */
export class TextMask {
  readonly #plain: TextAutomaton;
  readonly #normalized: TextAutomaton | undefined;

  constructor(plain: readonly SecretText[], normalized: readonly SecretText[] = []) {
    this.#plain = new TextAutomaton(plain, shortestPrefix.plain);
    this.#normalized = normalized.length === 0 ? undefined : new TextAutomaton(normalized, shortestPrefix.normalized);
  }

  /**
   * Masks a text, and removes the lookaheads of cut texts that it contains. If `isSnapshot` is true, split secrets are
   * searched only in quoted strings.
   */
  apply(text: string, isSnapshot = false): string {
    const isCut = text.length >= shortestCut;
    const marked = unmarkLookahead(text);
    const plain = replace(marked, this.#plain.find(marked.text, isCut));
    return dropLookahead(
      this.#normalized ? replace(plain, findNormalized(this.#normalized, plain.text, isSnapshot, isCut)) : plain,
    );
  }
}

/** A text in which the lookahead of cut texts is unmarked, so that secrets are found across the cuts. */
interface UncutText {
  readonly text: string;
  /** Starts and ends of the lookaheads, in order. */
  readonly bounds: readonly number[];
}

/** Removes the start marks of lookaheads. The end marks stay, because a secret may be cut at the end of a lookahead. */
function unmarkLookahead(text: string): UncutText {
  const bounds: number[] = [];
  let whole = "";
  let at = 0;
  for (const { index, 0: lookahead } of text.matchAll(/\ufdd0[^\ufdd0\ufdd1]*\ufdd1/g)) {
    whole += text.slice(at, index);
    bounds.push(whole.length, whole.length + lookahead.length - 1);
    whole += lookahead.slice(1);
    at = index + lookahead.length;
  }
  return { text: whole + text.slice(at), bounds };
}

/** Replaces matches. If a match extends beyond a cut, its replacement is placed before the cut. */
function replace({ text, bounds }: UncutText, matches: readonly Match[]): UncutText {
  const moved: number[] = [];
  let written = "";
  let at = 0;
  const moveUntil = (end: number): void => {
    for (let bound = bounds[moved.length]; bound !== undefined && bound <= end; bound = bounds[moved.length])
      moved.push(written.length + Math.max(0, bound - at));
  };
  for (const { start, end, replacement } of matches) {
    moveUntil(start);
    written += text.slice(at, start) + replacement;
    at = end;
    moveUntil(end);
  }
  moveUntil(text.length);
  return { text: written + text.slice(at), bounds: moved };
}

/** Removes the lookaheads. */
function dropLookahead({ text, bounds }: UncutText): string {
  let written = "";
  let at = 0;
  for (let index = 0; index < bounds.length; index += 2) {
    written += text.slice(at, bounds[index]);
    at = bounds[index + 1] ?? at;
  }
  return written + text.slice(at);
}

/**
 * Finds secrets with split or encoded characters. Separators between the characters, such as line breaks, stay.
 */
function findNormalized(automaton: TextAutomaton, text: string, isSnapshot: boolean, isCut: boolean): Match[] {
  const { text: normalized, starts, ends } = normalizeText(text, isSnapshot);
  const found: Match[] = [];
  let at = 0;
  for (const { start, end, replacement } of automaton.find(normalized, isCut)) {
    let name = replacement;
    for (let index = start; index < end; index += 1) {
      const [from = at, to = at] = [starts[index], ends[index]];
      // One encoded piece of the text may yield several characters.
      if (from >= at) found.push({ start: from, end: to, replacement: name });
      name = "";
      at = Math.max(at, to);
    }
  }
  return found;
}
