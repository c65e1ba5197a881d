/** Markup that is safe to insert without escaping. */
export class Html {
  readonly markup: string;

  constructor(markup: string) {
    this.markup = markup;
  }
}

/** Values that can be inserted. Text is escaped, markup is not. Undefined and false are omitted. */
export type Insert = Html | string | number | undefined | false | readonly Insert[];

/** Builds markup from a template, escaping inserted text. */
export function html(strings: TemplateStringsArray, ...inserts: readonly Insert[]): Html {
  return new Html(String.raw({ raw: strings }, ...inserts.map(markupOf)));
}

function markupOf(insert: Insert): string {
  if (insert instanceof Html) return insert.markup;
  if (insert === undefined || insert === false) return "";
  return typeof insert === "object" ? insert.map(markupOf).join("") : escapeText(String(insert));
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escapeText(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? character);
}
