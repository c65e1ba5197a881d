import type { DescMessage, DescMethodServerStreaming, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { createAsyncIterable } from "@connectrpc/connect/protocol";
import { useTransport } from "@connectrpc/connect-query";
import { useEffect, useEffectEvent, useState } from "react";
import { problemOf } from "./problem.ts";

/** Milliseconds before an ended stream is opened again, doubled with each failure. */
const firstPauseMs = 1_000;
const longestPauseMs = 60_000;

const subscribe = (listener: () => void): (() => void) => {
  document.addEventListener("visibilitychange", listener);
  return () => document.removeEventListener("visibilitychange", listener);
};

export function useIsVisible(): boolean {
  const [isVisible, setVisible] = useState(!document.hidden);
  useEffect(() => subscribe(() => setVisible(!document.hidden)), []);
  return isVisible;
}

interface StreamOptions<I extends DescMessage, O extends DescMessage> {
  /** Identifies the stream. Another one is opened if it changes, and none while it is undefined. */
  readonly id: string | undefined;
  /** Returns the request. Called each time that the stream is opened. */
  readonly request: () => MessageInitShape<I>;
  readonly onMessage: (message: MessageShape<O>) => void;
}

/** Receives a stream while the page is visible. Opens it again when it ends, unless its session has ended. */
export function useStream<I extends DescMessage, O extends DescMessage>(
  method: DescMethodServerStreaming<I, O>,
  { id, request, onMessage }: StreamOptions<I, O>,
): void {
  const transport = useTransport();
  const isVisible = useIsVisible();
  const requestNow = useEffectEvent(request);
  const receive = useEffectEvent(onMessage);
  useEffect(() => {
    if (!isVisible || id === undefined) return;
    const stopped = new AbortController();
    const { signal } = stopped;
    void keepOpen(signal, async (onReceived) => {
      const input = createAsyncIterable([requestNow()]);
      const { message } = await transport.stream(method, signal, undefined, undefined, input);
      for await (const each of message) {
        if (signal.aborted) return;
        onReceived();
        receive(each);
      }
    });
    return () => stopped.abort();
  }, [id, isVisible, transport, method]);
}

/** Opens a stream again and again until the signal is aborted or the stream's session has ended. */
export async function keepOpen(signal: AbortSignal, read: (onReceived: () => void) => Promise<void>): Promise<void> {
  for (let pauseMs = firstPauseMs; !signal.aborted; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
    try {
      await read(() => {
        pauseMs = firstPauseMs;
      });
    } catch (error) {
      if (["session-destroyed", "not-found"].includes(problemOf(error).slug)) return;
    }
    await pause(pauseMs * (0.5 + Math.random() / 2), signal);
  }
}

/** Resolves after a time, or when the signal is aborted. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
    if (signal.aborted) resolve();
  });
}
