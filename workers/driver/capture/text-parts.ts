import { setImmediate as nextTask } from "node:timers/promises";
import { captureTooLarge, maxBytes } from "./captured.ts";

/** Characters processed, in at most 2 ms, before the thread runs the tasks of other sessions. */
const sliceLength = 1024 * 1024;

/** Encodes a long text as UTF-8, in slices. Throws if the text exceeds `maxBytes` characters. */
export async function encodeText(text: string): Promise<Buffer[]> {
  if (text.length > maxBytes) throw captureTooLarge(text.length);
  const parts: Buffer[] = [];
  for (const slice of slices(text)) {
    if (parts.push(Buffer.from(slice, "utf8")) > 1) await nextTask();
  }
  return parts;
}

/** Escapes a text, in slices, for use as an attribute value. Throws if the result exceeds `limit` characters. */
export async function escapeAttribute(text: string, limit: number): Promise<string> {
  const parts: string[] = [];
  let length = 0;
  for (const slice of slices(text)) {
    const escaped = slice.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
    length += escaped.length;
    if (length > limit) throw captureTooLarge(length);
    if (parts.push(escaped) > 1) await nextTask();
  }
  return parts.join("");
}

/** Splits a text into slices without splitting surrogate pairs. */
function* slices(text: string): Generator<string, void, undefined> {
  for (let from = 0; from < text.length; ) {
    const last = text.charCodeAt(from + sliceLength - 1);
    const to = from + sliceLength - (last >= 0xd800 && last <= 0xdbff ? 1 : 0);
    yield text.slice(from, to);
    from = to;
  }
}
