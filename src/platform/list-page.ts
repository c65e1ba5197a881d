import { failFields } from "./errors.ts";

/** A page of a list, newest first, and the position of the next page. */
export interface ListPage<Row> {
  readonly rows: readonly Row[];
  readonly position: { readonly hasMore: boolean; readonly nextCursor?: string };
}

/**
 * Decodes a cursor: the identifier of the previous page's last item. Throws `validation-failed` if the decoded text
 * does not match `identifier`.
 */
export function readCursor(cursor: string | undefined, identifier: RegExp): string | undefined {
  if (cursor === undefined) return undefined;
  const id = Buffer.from(cursor, "base64url").toString();
  if (!identifier.test(id)) throw failFields("validation-failed", { cursor: "is not a next_cursor of this list" });
  return id;
}

/** Returns a page of up to `limit` rows. Callers read one more row, which shows whether there is a next page. */
export function cutPage<Row extends { readonly id: string }>(found: readonly Row[], limit: number): ListPage<Row> {
  const rows = found.slice(0, limit);
  const last = found.length > limit ? rows.at(-1) : undefined;
  return { rows, position: last ? { hasMore: true, nextCursor: encode(last.id) } : { hasMore: false } };
}

function encode(id: string): string {
  return Buffer.from(id).toString("base64url");
}
