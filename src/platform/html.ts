/** Markup that is safe to put into a page as it is. */
export class Html {
  readonly markup: string;

  constructor(markup: string) {
    this.markup = markup;
  }
}

/** What can be put into a page: text is escaped, markup is not, nothing for undefined and false. */
export type Insert = Html | string | number | undefined | false | readonly Insert[];

/** Writes markup; whatever is inserted is escaped unless it is markup itself. */
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
