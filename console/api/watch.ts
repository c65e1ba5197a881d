import type { DescMessage, DescMethodServerStreaming, DescService, MessageInitShape } from "@bufbuild/protobuf";
import { createAsyncIterable } from "@connectrpc/connect/protocol";
import { useTransport } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { keyOf } from "./queries.ts";

/** Milliseconds in which several events cause one read. */
const gatherMs = 250;

/** Milliseconds before an ended stream is opened again. */
const pauseMs = 3_000;

interface WatchOptions {
  readonly isEnabled: boolean;
  /** Services whose queries are read again after an event. */
  readonly changes: readonly DescService[];
}

/** Follows a stream of events while the page is visible, and reads queries again after each. */
export function useWatch<I extends DescMessage, O extends DescMessage>(
  method: DescMethodServerStreaming<I, O>,
  input: MessageInitShape<I> & { readonly id: string },
  { isEnabled, changes }: WatchOptions,
): void {
  const transport = useTransport();
  const client = useQueryClient();
  const { id } = input;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the id identifies the stream; the others are constant
  useEffect(() => {
    if (!isEnabled) return;
    const stopped = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const readAgain = (): void => {
      timer ??= setTimeout(() => {
        timer = undefined;
        for (const service of changes) void client.invalidateQueries({ queryKey: keyOf(service) });
      }, gatherMs);
    };
    const follow = async (): Promise<void> => {
      const { signal } = stopped;
      const { message } = await transport.stream(method, signal, undefined, undefined, createAsyncIterable([input]));
      for await (const _ of message) readAgain();
    };
    const run = async (): Promise<void> => {
      while (!stopped.signal.aborted) {
        await follow().catch(() => undefined);
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    };
    void run();
    return () => {
      stopped.abort();
      clearTimeout(timer);
    };
  }, [id, isEnabled]);
}
