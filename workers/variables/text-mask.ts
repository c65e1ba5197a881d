import { bareText } from "./bare-text.ts";
import { type Cover, type Match, TextAutomaton } from "./text-automaton.ts";

/** Shortest prefixes of secrets that are masked where a text was truncated: of plain texts, and of bare texts. */
const shortestBeginning = { plain: 4, bare: 8 };

/** Least length of a text that may be truncated without the truncation mark. */
const shortestCut = 200;

/**
 * Masks texts wherever they occur. `bare` are texts as `bareText` returns them, which are found however a page splits or
 * encodes their characters.
 */
export class TextMask {
  readonly #plain: TextAutomaton;
  readonly #bare: TextAutomaton | undefined;

  constructor(plain: readonly Cover[], bare: readonly Cover[] = []) {
    this.#plain = new TextAutomaton(plain, shortestBeginning.plain);
    this.#bare = bare.length === 0 ? undefined : new TextAutomaton(bare, shortestBeginning.bare);
  }

  /** Masks a text, and removes its margins. */
  apply(text: string, isSnapshot = false): string {
    const isCut = text.length >= shortestCut;
    const marked = readMargins(text);
    const plain = replace(marked, this.#plain.find(marked.text, isCut));
    return withoutRanges(this.#bare ? replace(plain, findBare(this.#bare, plain.text, isSnapshot, isCut)) : plain);
  }
}

/** A text whose cuts were undone. */
interface Uncut {
  readonly text: string;
  /** Starts and ends of the margins, in order. */
  readonly bounds: readonly number[];
}

/** Removes the starting marks of the margins. The ending marks stay, because a secret may be cut there. */
function readMargins(text: string): Uncut {
  const bounds: number[] = [];
  let whole = "";
  let at = 0;
  for (const { index, 0: margin } of text.matchAll(/\ufdd0[^\ufdd0\ufdd1]*\ufdd1/g)) {
    whole += text.slice(at, index);
    bounds.push(whole.length, whole.length + margin.length - 1);
    whole += margin.slice(1);
    at = index + margin.length;
  }
  return { text: whole + text.slice(at), bounds };
}

/** Replaces matches. The replacement of a match that a cut splits precedes the cut. */
function replace({ text, bounds }: Uncut, matches: readonly Match[]): Uncut {
  const moved: number[] = [];
  let written = "";
  let at = 0;
  const moveUntil = (end: number): void => {
    for (let bound = bounds[moved.length]; bound !== undefined && bound <= end; bound = bounds[moved.length])
      moved.push(written.length + Math.max(0, bound - at));
  };
  for (const { start, end, shown } of matches) {
    moveUntil(start);
    written += text.slice(at, start) + shown;
    at = end;
    moveUntil(end);
  }
  moveUntil(text.length);
  return { text: written + text.slice(at), bounds: moved };
}

function withoutRanges({ text, bounds }: Uncut): string {
  let written = "";
  let at = 0;
  for (let index = 0; index < bounds.length; index += 2) {
    written += text.slice(at, bounds[index]);
    at = bounds[index + 1] ?? at;
  }
  return written + text.slice(at);
}

/** Finds texts however their characters are split or encoded. Separators between the characters stay, as do line breaks. */
function findBare(automaton: TextAutomaton, text: string, isSnapshot: boolean, isCut: boolean): Match[] {
  const { text: bare, starts, ends } = bareText(text, isSnapshot);
  const found: Match[] = [];
  let at = 0;
  for (const { start, end, shown } of automaton.find(bare, isCut)) {
    let name = shown;
    for (let index = start; index < end; index += 1) {
      const [from = at, to = at] = [starts[index], ends[index]];
      // Several characters may come from one piece of the text.
      if (from >= at) found.push({ start: from, end: to, shown: name });
      name = "";
      at = Math.max(at, to);
    }
  }
  return found;
}
