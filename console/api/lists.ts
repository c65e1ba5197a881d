import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { callUnaryMethod, createConnectQueryKey, useTransport } from "@connectrpc/connect-query";
import { useInfiniteQuery } from "@tanstack/react-query";

/** Rows that a list shows at first, and that each press of Show more adds. */
const pageSize = 30;

type RowOf<O extends DescMessage> = MessageShape<O> extends { data: (infer R)[] } ? R : never;

interface ListPage<R> {
  readonly data: readonly R[];
  readonly hasMore: boolean;
  readonly nextCursor?: string;
}

/** Rows of a list so far. */
export interface ListResult<R> {
  readonly data: readonly R[] | undefined;
  readonly error: Error | null;
  readonly hasMore: boolean;
  readonly isLoadingMore: boolean;
  refetch(): unknown;
  loadMore(): void;
}

/** Rows of a list method, which has `limit` and `cursor`. */
export function useList<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  input: MessageInitShape<I>,
): ListResult<RowOf<O>> {
  const transport = useTransport();
  const query = useInfiniteQuery({
    queryKey: createConnectQueryKey({ schema: method, transport, input, cardinality: "infinite" }),
    initialPageParam: undefined as string | undefined,
    queryFn: async ({ pageParam: cursor, signal }) => {
      // Casts: all list requests have `limit` and `cursor`, and all list responses have the fields of `ListPage`.
      const request = { limit: pageSize, ...input, ...(cursor !== undefined && { cursor }) } as MessageInitShape<I>;
      return (await callUnaryMethod(transport, method, request, { signal })) as unknown as ListPage<RowOf<O>>;
    },
    getNextPageParam: ({ hasMore, nextCursor }) => (hasMore ? nextCursor : undefined),
  });
  return {
    data: query.data?.pages.flatMap(({ data }) => data),
    error: query.error,
    refetch: query.refetch,
    hasMore: query.hasNextPage,
    isLoadingMore: query.isFetchingNextPage,
    loadMore: () => void query.fetchNextPage(),
  };
}
