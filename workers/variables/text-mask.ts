import { bareText } from "./bare-text.ts";
import { type Cover, TextAutomaton } from "./text-automaton.ts";

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

  apply(text: string, isSnapshot = false): string {
    const isCut = text.length >= shortestCut;
    let written = "";
    let at = 0;
    for (const { start, end, shown } of this.#plain.find(text, isCut)) {
      written += text.slice(at, start) + shown;
      at = end;
    }
    written += text.slice(at);
    return this.#bare ? maskBare(this.#bare, written, isSnapshot, isCut) : written;
  }
}

function maskBare(automaton: TextAutomaton, text: string, isSnapshot: boolean, isCut: boolean): string {
  const { text: bare, starts, ends } = bareText(text, isSnapshot);
  let written = "";
  let at = 0;
  for (const { start, end, shown } of automaton.find(bare, isCut)) {
    let name = shown;
    // Separators between the characters stay, and so do line breaks.
    for (let index = start; index < end; index += 1) {
      const [from = at, to = at] = [starts[index], ends[index]];
      if (from >= at) written += text.slice(at, from) + name;
      name = "";
      at = Math.max(at, to);
    }
  }
  return written + text.slice(at);
}
