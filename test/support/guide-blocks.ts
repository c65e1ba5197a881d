import { readFileSync } from "node:fs";

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
