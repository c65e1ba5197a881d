import { type Html, html } from "../../src/platform/html.ts";

/** Renders a description, such as a proto comment: paragraphs, lists of lines that begin with a dash, and `code`. */
export function prose(text: string): Html[] {
  return text
    .split("\n\n")
    .filter((block) => block !== "")
    .map((block) =>
      block.startsWith("- ")
        ? html`<ul>${block.split("\n").map((line) => html`<li>${inline(line.slice(2))}</li>`)}</ul>`
        : html`<p>${inline(block)}</p>`,
    );
}

/** Renders one paragraph of a description, with text between backticks as `code`. */
export function inline(text: string): Html[] {
  return text.split("`").map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`));
}
