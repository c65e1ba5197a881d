import type { FetchAnswer, SafeFetch } from "../../platform/outgoing/safe-fetch.ts";

/** Milliseconds. A model may think for long before it says a word; once it speaks it is not silent for long. */
const times = { connect: 10_000, head: 120_000, silence: 60_000, whole: 600_000 };

/** Bytes that an answer may have: a stream says every few letters in 300 bytes. */
const maxBytes = 33_554_432;

/** Statuses that have no body. */
const bodiless = new Set([204, 205, 304]);

/** Makes a `fetch` of the safe one, for what knows no other: it takes what the packages of providers send, JSON by POST. */
export function asFetch(safe: SafeFetch): typeof fetch {
  return async (input, { body, headers, signal } = {}) => {
    if (typeof body !== "string") throw new TypeError("a provider is sent text");
    const answer = await safe.send(String(input instanceof Request ? input.url : input), {
      method: "POST",
      headers: Object.fromEntries(new Headers(headers)),
      body,
      signal: signal ?? new AbortController().signal,
      ...{ times, maxBytes },
    });
    return toResponse(answer);
  };
}

function toResponse({ status, headers, body, cancel }: FetchAnswer): Response {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((each): [string, string] => [name, each]),
  );
  if (bodiless.has(status)) cancel();
  // Anything else than that is no answer that a Response can be.
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
