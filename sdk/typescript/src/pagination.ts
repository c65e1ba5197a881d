import type { CallOptions, Query, Transport } from "./transport.ts";

/** One page of a list. */
export interface Page<Item> {
  readonly data: readonly Item[];
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

/** Iterates over the items of a list, and requests its pages as they are needed. */
export async function* paginate<Item>(
  transport: Transport,
  path: string,
  query: Query,
  options?: CallOptions,
): AsyncGenerator<Item, void> {
  let cursor: string | undefined;
  do {
    const page: Page<Item> = await transport.json("GET", path, { query: { ...query, cursor } }, options);
    yield* page.data;
    cursor = page.has_more ? (page.next_cursor ?? undefined) : undefined;
  } while (cursor !== undefined);
}
