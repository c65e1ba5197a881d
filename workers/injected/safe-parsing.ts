/* Lets libraries parse HTML in our world of pages that forbid it to scripts (Trusted Types). Pages keep their own prototypes. */

/** Members of the HTML Sanitizer API, which the types of the DOM lack. */
interface SafeParsing {
  parseHTML(html: string, options: typeof everythingSafe): Document;
}
interface SafeWriting extends Element {
  setHTML(html: string, options: typeof everythingSafe): void;
}

/** Keeps all elements and attributes but those that run code. */
const everythingSafe = { sanitizer: {} };

export function parseHtml(html: string): Document {
  // Cast: the types of the DOM lack this function.
  return (Document as unknown as SafeParsing).parseHTML(html, everythingSafe);
}

DOMParser.prototype.parseFromString = parseHtml;
Object.defineProperty(Element.prototype, "innerHTML", {
  ...Object.getOwnPropertyDescriptor(Element.prototype, "innerHTML"),
  set(this: SafeWriting, html: string) {
    this.setHTML(html, everythingSafe);
  },
});
