import type { DescMessage, DescMethodUnary, DescService, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { createConnectQueryKey, useMutation } from "@connectrpc/connect-query";
import { QueryClient, useQueryClient } from "@tanstack/react-query";
import { problemOf } from "./problem.ts";

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 3_000,
      retry: (count, error) => count < 2 && ["offline", "internal"].includes(problemOf(error).slug),
      retryDelay: (count) => 500 * 2 ** count,
    },
    mutations: { retry: false },
  },
});

/** Returns the key of all queries of a service. */
export const keyOf = (schema: DescService) => createConnectQueryKey({ schema, cardinality: undefined });

interface ChangeOptions<O extends DescMessage> {
  /** Services whose data the change concerns; their queries are read again. */
  readonly changes?: readonly DescService[];
  readonly onDone?: (response: MessageShape<O>) => unknown;
}

/** A method that changes something, for a form or a button. */
export function useChange<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  { changes = [], onDone }: ChangeOptions<O> = {},
) {
  const client = useQueryClient();
  const mutation = useMutation(method, {
    onSuccess: async (response) => {
      await Promise.all(changes.map((service) => client.invalidateQueries({ queryKey: keyOf(service) })));
      onDone?.(response);
    },
  });
  return {
    isPending: mutation.isPending,
    isDone: mutation.isSuccess,
    problem: mutation.error ? problemOf(mutation.error) : undefined,
    data: mutation.data,
    reset: mutation.reset,
    /** Runs the method. Errors are in `problem`. */
    run: (request: MessageInitShape<I>): void => mutation.mutate(request),
    /** Runs the method, and rejects on errors. */
    runAsync: (request: MessageInitShape<I>): Promise<MessageShape<O>> => mutation.mutateAsync(request),
  };
}
