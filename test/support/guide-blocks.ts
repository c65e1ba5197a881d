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
