import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, extname } from "node:path";

/** Changes of files that are written together, so that a refused command leaves the checkout as it was. */
export class Tree {
  /** Next steps for the contributor. */
  readonly steps: string[] = [];
  readonly #changed = new Map<string, string>();

  has(file: string): boolean {
    return this.#changed.has(file) || existsSync(file);
  }

  read(file: string): string {
    return this.#changed.get(file) ?? readFileSync(file, "utf8");
  }

  write(file: string, text: string): void {
    this.#changed.set(file, text);
  }

  /** Finds files by a glob pattern and their text. Includes files that are not yet saved. */
  find(pattern: string, text: RegExp): string[] {
    const files = new Set([...globSync(pattern), ...this.#changed.keys()]);
    return [...files].filter((file) => extname(file) === extname(pattern) && text.test(this.read(file)));
  }

  /** Inserts text before the last occurrence of `mark`. */
  insertBefore(file: string, mark: string, text: string): void {
    const before = this.read(file);
    const at = before.lastIndexOf(mark);
    if (at < 0) throw new Error(`${file} has no ${JSON.stringify(mark)}: insert this by hand:\n${text}`);
    this.write(file, before.slice(0, at) + text + before.slice(at));
  }

  /** Saves all changes and returns the names of the files. */
  save(): string[] {
    for (const [file, text] of this.#changed) {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    }
    return [...this.#changed.keys()];
  }
}

const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

/** Converts `note_renamed` or `note-renamed` to `NoteRenamed`. */
export const pascal = (words: string): string => words.split(/[_-]/).map(capital).join("");

export const camel = (words: string): string => {
  const name = pascal(words);
  return name.charAt(0).toLowerCase() + name.slice(1);
};
