import { marginMarks } from "../injected/plain-text.ts";

/** A secret text with its replacement. */
export interface Cover {
  readonly text: string;
  readonly shown: string;
}

/** A match in a text. `end` is exclusive. */
export interface Match {
  readonly start: number;
  readonly end: number;
  readonly shown: string;
}

/** The truncation mark, and the end of the margin of a cut text. */
const cutSigns: ReadonlySet<number> = new Set(["…", marginMarks.end].map((sign) => sign.charCodeAt(0)));

/**
 * Finds texts wherever they occur, in time linear to the input: tenants control both sides and share the process (Aho and
 * Corasick, 1975). Overlapping matches are joined.
 */
export class TextAutomaton {
  /** Next state by state and character. State 0 is the root. */
  readonly #next = new Map<number, number>();
  /** Depth of each state. */
  readonly #depth = [0];
  /** For each state, the state of its longest proper suffix. */
  readonly #shorter = [0];
  /** For each state, the longest text that ends in the state. */
  readonly #ended: (Cover | undefined)[] = [undefined];
  /** For each state, the text of which the state is a prefix. */
  readonly #begun: (Cover | undefined)[] = [undefined];
  readonly #shortestBeginning: number;

  /** `shortestBeginning`: the shortest prefix of a text that is found where the input was truncated. */
  constructor(covers: readonly Cover[], shortestBeginning: number) {
    this.#shortestBeginning = shortestBeginning;
    const steps: { readonly from: number; readonly code: number; readonly to: number }[] = [];
    for (const cover of covers) {
      let state = 0;
      for (let index = 0; index < cover.text.length; index += 1) {
        const code = cover.text.charCodeAt(index);
        const known = this.#next.get(keyOf(state, code));
        const to = known ?? this.#depth.push(index + 1) - 1;
        if (known === undefined) {
          this.#next.set(keyOf(state, code), to);
          this.#begun[to] = cover;
          steps.push({ from: state, code, to });
        }
        state = to;
      }
      if (state !== 0) this.#ended[state] ??= cover;
    }
    steps.sort((one, other) => (this.#depth[one.to] ?? 0) - (this.#depth[other.to] ?? 0));
    for (const { from, code, to } of steps) {
      const shorter = from === 0 ? 0 : this.#after(this.#shorter[from] ?? 0, code);
      this.#shorter[to] = shorter;
      this.#ended[to] ??= this.#ended[shorter];
    }
  }

  /** Returns the matches in a text. `isCut`: the text may be truncated at its end without the truncation mark. */
  find(text: string, isCut: boolean): readonly Match[] {
    const matches: Match[] = [];
    const add = (end: number, length: number, shown: string): void => {
      let start = end - length;
      for (let last = matches.at(-1); last && last.end > start; last = matches.at(-1)) {
        start = Math.min(start, last.start);
        matches.pop();
      }
      matches.push({ start, end, shown });
    };
    let state = 0;
    const addBeginning = (end: number): void => {
      const [depth = 0, begun] = [this.#depth[state], this.#begun[state]];
      if (begun && depth >= this.#shortestBeginning) add(end, depth, begun.shown);
    };
    for (let index = 0; index < text.length; index += 1) {
      const code = text.charCodeAt(index);
      if (cutSigns.has(code)) addBeginning(index);
      state = this.#after(state, code);
      const ended = this.#ended[state];
      if (ended) add(index + 1, ended.text.length, ended.shown);
    }
    if (isCut) addBeginning(text.length);
    return matches;
  }

  /** Returns the state after one more character. */
  #after(from: number, code: number): number {
    let state = from;
    for (;;) {
      const next = this.#next.get(keyOf(state, code));
      if (next !== undefined || state === 0) return next ?? 0;
      state = this.#shorter[state] ?? 0;
    }
  }
}

const keyOf = (state: number, code: number): number => state * 65_536 + code;
