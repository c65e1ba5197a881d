import type { FetchAnswer, SafeFetch } from "../../platform/outgoing/safe-fetch.ts";

/**
 * Milliseconds: to connect, until the head of the response, between parts of its body (`silence`), and in total. A
 * model may take long before its first token, but later gaps are short.
 */
const times = { connect: 10_000, head: 120_000, silence: 60_000, whole: 600_000 };

/** Maximum bytes of a response. A stream needs about 300 bytes for every few characters. */
const maxBytes = 33_554_432;

const bodiless = new Set([204, 205, 304]);

/** Adapts `SafeFetch` to the signature of `fetch`. Supports only what provider packages use: POST with a text body. */
export function asFetch(safe: SafeFetch): typeof fetch {
  return async (input, { body, headers, signal } = {}) => {
    if (typeof body !== "string") throw new TypeError("expected a request body of type string");
    const answer = await safe.send(String(input instanceof Request ? input.url : input), {
      method: "POST",
      headers: Object.fromEntries(new Headers(headers)),
      body,
      signal: signal ?? new AbortController().signal,
      times,
      maxBytes,
    });
    return toResponse(answer);
  };
}

function toResponse({ status, headers, body, cancel }: FetchAnswer): Response {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((each): [string, string] => [name, each]),
  );
  if (bodiless.has(status)) cancel();
  // `Response` throws for status codes outside 200 to 599.
  const known = status >= 200 && status <= 599 ? status : 502;
  return new Response(bodiless.has(status) ? null : toStream(body, cancel), { status: known, headers: lines });
}

function toStream(body: FetchAnswer["body"], cancel: () => void): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await body.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel,
  });
}
