import type { DescMessage, DescMethodServerStreaming, DescService, MessageInitShape } from "@bufbuild/protobuf";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { keyOf } from "./queries.ts";
import { useStream } from "./stream.ts";

/** Milliseconds in which several events cause one read. */
const gatherMs = 250;

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
  const client = useQueryClient();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const readAgain = (): void => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      for (const service of changes) void client.invalidateQueries({ queryKey: keyOf(service) });
    }, gatherMs);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  useStream(method, { id: isEnabled ? input.id : undefined, request: () => input, onMessage: readAgain });
}
