import { readFileSync } from "node:fs";

/** The headings and languages of all blocks in a page of `docs/`, as `Heading (language)`. */
export function blockNamesOf(page: string): string[] {
  const text = readFileSync(new URL(`../../docs/${page}`, import.meta.url), "utf8");
  return text
    .split(/^#+ /m)
    .flatMap((section) =>
      [...section.matchAll(/^```(\w+)\n.*?^```$/gms)].map(
        ([, language]) => `${section.split("\n", 1)[0]} (${language})`,
      ),
    );
}

/** The blocks of one language in a page of `docs/`, by the heading above each. */
export function blocksOf(page: string, language: string): Map<string, string> {
  const text = readFileSync(new URL(`../../docs/${page}`, import.meta.url), "utf8");
  const blocks = new Map<string, string>();
  for (const section of text.split(/^#+ /m)) {
    const [heading = ""] = section.split("\n", 1);
    const block = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "ms").exec(section)?.[1];
    if (block !== undefined) blocks.set(heading, block);
  }
  return blocks;
}

/** A heading of a page, and the blocks of code below it. */
export interface Section {
  readonly heading: string;
  readonly blocks: readonly { readonly language: string; readonly text: string }[];
}

/** The sections of a page of `docs/`, in order. */
export function sectionsOf(page: string): Section[] {
  const text = readFileSync(new URL(`../../docs/${page}`, import.meta.url), "utf8");
  // A comment in a block begins as a heading does.
  const parts = text.split(/^(?:##+ |# (?=(?:Pilothouse|Examples)$))/m);
  return parts.map((part) => ({
    heading: part.split("\n", 1)[0] ?? "",
    blocks: [...part.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = "", block = ""]) => ({
      language,
      text: block,
    })),
  }));
}
