/*
 * Replaces `innerHTML` and `DOMParser` in our isolated world, so that libraries can parse HTML where Trusted Types
 * forbid it. The page's own prototypes do not change.
 */

/** Members of the HTML Sanitizer API that TypeScript's DOM types lack. */
interface SafeParsing {
  parseHTML(html: string, options: typeof everythingSafe): Document;
}
interface SafeWriting extends Element {
  setHTML(html: string, options: typeof everythingSafe): void;
}

/** Keeps all elements and attributes but those that run code. */
const everythingSafe = { sanitizer: {} };

export function parseHtml(html: string): Document {
  // Cast: TypeScript's DOM types lack this function.
  return (Document as unknown as SafeParsing).parseHTML(html, everythingSafe);
}

DOMParser.prototype.parseFromString = parseHtml;
Object.defineProperty(Element.prototype, "innerHTML", {
  ...Object.getOwnPropertyDescriptor(Element.prototype, "innerHTML"),
  set(this: SafeWriting, html: string) {
    this.setHTML(html, everythingSafe);
  },
});
