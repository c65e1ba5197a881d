import { create } from "@bufbuild/protobuf";
import { type FetchedLink, FetchedLinkSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";

const maxLinks = 2_000;
/** Maximum bytes of all links with their texts. */
const maxBytes = 1024 * 1024;
/** Maximum characters of HTML that are read per link. */
const maxLink = 8_192;
const maxLinkText = 400;

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', nbsp: " " };

/**
 * Returns the http and https links of a document, each URL once. Expects HTML that a browser serialized: attribute
 * values are quoted and contain no `<`. `isCut` is true if `maxLinks` or `maxBytes` was reached.
 */
export function findLinks(html: string, address: string): { links: FetchedLink[]; isCut: boolean } {
  const links = new Map<string, FetchedLink>();
  let bytes = 0;
  for (let at = html.indexOf("<a "); at !== -1; at = html.indexOf("<a ", at + 3)) {
    const part = html.slice(at, at + maxLink);
    const [, tag = "", inner = ""] = /^<a ([^>]*)>(.*)$/s.exec(part) ?? [];
    const href = decode(/(?:^|\s)href="([^"]*)"/.exec(tag)?.[1] ?? "");
    const url = URL.parse(href, address)?.href ?? "";
    if (href === "" || !/^https?:/.test(url) || links.has(url)) continue;
    const [content = ""] = inner.split("</a>", 1);
    const text = decode(content.replace(/<[^>]*>/g, " "))
      .replace(/\s+/g, " ")
      .trim()
      .slice(0, maxLinkText)
      .toWellFormed();
    bytes += url.length + Buffer.byteLength(text);
    if (links.size === maxLinks || bytes > maxBytes) return { links: [...links.values()], isCut: true };
    links.set(url, create(FetchedLinkSchema, { url, text }));
  }
  return { links: [...links.values()], isCut: false };
}

function decode(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|nbsp);/g, (_, name: string) => entities[name] ?? "");
}
