import { readFileSync } from "node:fs";

/** Returns the heading and language of each block in a page of `docs/`, as `Heading (language)`. */
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

/** Returns the blocks of one language in a page of `docs/`, by heading. */
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

/** Heading of a page with the code blocks below it. */
export interface Section {
  readonly heading: string;
  readonly blocks: readonly { readonly language: string; readonly text: string }[];
}

/** Returns the sections of a page of `docs/` in order. */
export function sectionsOf(page: string): Section[] {
  const text = readFileSync(new URL(`../../docs/${page}`, import.meta.url), "utf8");
  // Shell comments in blocks look like headings.
  const parts = text.split(/^(?:##+ |# (?=(?:Pilothouse|Examples)$))/m);
  return parts.map((part) => ({
    heading: part.split("\n", 1)[0] ?? "",
    blocks: [...part.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = "", block = ""]) => ({
      language,
      text: block,
    })),
  }));
}
