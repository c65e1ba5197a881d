import { lookaheadMarks } from "../injected/plain-text.ts";

/** A secret text with its replacement. */
export interface SecretText {
  readonly text: string;
  readonly replacement: string;
}

/** A match in a text. `end` is exclusive. */
export interface Match {
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

/** Characters at which a text was cut: the truncation mark, and the end mark of the lookahead. */
const cutMarks: ReadonlySet<number> = new Set(["…", lookaheadMarks.end].map((sign) => sign.charCodeAt(0)));

/**
 * Finds secret texts in a text in linear time (Aho and Corasick, 1975), because tenants control both texts and share
 * the process. Overlapping matches are joined.
 */
export class TextAutomaton {
  /** Next state by state and character. A state is a prefix of a secret, state 0 the empty prefix. */
  readonly #next = new Map<number, number>();
  /** Length of each state's prefix. */
  readonly #depth = [0];
  /** For each state, the state of the longest proper suffix of its prefix that is also a prefix of a secret. */
  readonly #shorter = [0];
  /** For each state, the longest secret that the state's prefix ends with, if any. */
  readonly #endingAt: (SecretText | undefined)[] = [undefined];
  /** For each state, the first secret that begins with the state's prefix. */
  readonly #startingWith: (SecretText | undefined)[] = [undefined];
  readonly #shortestPrefix: number;

  /** `shortestPrefix` is the minimum length of a secret's prefix that is found where the input was cut. */
  constructor(secrets: readonly SecretText[], shortestPrefix: number) {
    this.#shortestPrefix = shortestPrefix;
    const steps: { readonly from: number; readonly code: number; readonly to: number }[] = [];
    for (const secret of secrets) {
      let state = 0;
      for (let index = 0; index < secret.text.length; index += 1) {
        const code = secret.text.charCodeAt(index);
        const known = this.#next.get(keyOf(state, code));
        const to = known ?? this.#depth.push(index + 1) - 1;
        if (known === undefined) {
          this.#next.set(keyOf(state, code), to);
          this.#startingWith[to] = secret;
          steps.push({ from: state, code, to });
        }
        state = to;
      }
      if (state !== 0) this.#endingAt[state] ??= secret;
    }
    steps.sort((one, other) => (this.#depth[one.to] ?? 0) - (this.#depth[other.to] ?? 0));
    for (const { from, code, to } of steps) {
      const shorter = from === 0 ? 0 : this.#after(this.#shorter[from] ?? 0, code);
      this.#shorter[to] = shorter;
      this.#endingAt[to] ??= this.#endingAt[shorter];
    }
  }

  /**
   * Returns the matches in a text, including prefixes of secrets where the text was cut. `isCut` is whether the text
   * may have been cut at its end without a truncation mark.
   */
  find(text: string, isCut: boolean): readonly Match[] {
    const matches: Match[] = [];
    const add = (end: number, length: number, replacement: string): void => {
      let start = end - length;
      for (let last = matches.at(-1); last && last.end > start; last = matches.at(-1)) {
        start = Math.min(start, last.start);
        matches.pop();
      }
      matches.push({ start, end, replacement });
    };
    let state = 0;
    const addPrefix = (end: number): void => {
      const [depth = 0, begun] = [this.#depth[state], this.#startingWith[state]];
      if (begun && depth >= this.#shortestPrefix) add(end, depth, begun.replacement);
    };
    for (let index = 0; index < text.length; index += 1) {
      const code = text.charCodeAt(index);
      if (cutMarks.has(code)) addPrefix(index);
      state = this.#after(state, code);
      const ended = this.#endingAt[state];
      if (ended) add(index + 1, ended.text.length, ended.replacement);
    }
    if (isCut) addPrefix(text.length);
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
