import { readFileSync } from "node:fs";
import type { Passage } from "./passages.ts";

/** A pattern of patterns.json. */
export interface ProsePattern {
  readonly name: string;
  /** Regular expression, case-insensitive. `^` is the start of a comment, a paragraph, a message or a subject. */
  readonly pattern: string;
  readonly kinds: readonly Passage["kind"][];
  /** A text that the pattern matches. */
  readonly catches: string;
  readonly passes: string;
  readonly instead: string;
}

export interface ProseHit {
  readonly pattern: string;
  readonly line: number;
  readonly text: string;
}

export const prosePatterns: readonly ProsePattern[] = JSON.parse(
  readFileSync(new URL("patterns.json", import.meta.url), "utf8"),
);

const compiled = prosePatterns.map((each) => ({ ...each, regex: new RegExp(each.pattern, "giu") }));

/** Code, URLs and quotations, which are not prose. */
const quoted = /`[^`]*`|\bhttps?:\/\/\S+|"[^"\n]{0,80}"/g;

/** Finds the patterns in a passage. */
export function findPatterns({ kind, line, text }: Passage): ProseHit[] {
  const prose = text.replace(quoted, (match) => match.replace(/\S/g, "x").replace(/ /g, "x")).replaceAll("\n", " ");
  return compiled
    .filter(({ kinds }) => kinds.includes(kind))
    .flatMap(({ name, regex }) => {
      const [match] = prose.matchAll(regex);
      if (!match) return [];
      const excerpt = text.slice(Math.max(0, match.index - 30), match.index + Math.max(match[0].length, 60) + 30);
      const before = text.slice(0, match.index).split("\n").length - 1;
      return [{ pattern: name, line: line + before, text: excerpt.replace(/\s+/g, " ").trim() }];
    });
}
