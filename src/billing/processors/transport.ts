import { loadUndici, operatorDispatcher } from "../../platform/outgoing/operator-dispatcher.ts";
import type { OutgoingOptions } from "../../platform/outgoing/outgoing-options.ts";

export interface ProcessorRequest {
  readonly method: string;
  /** Path with query, as in the processor's reference: `/v1/customers`. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface ProcessorAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Sends requests to a processor: over HTTP, or to the sandbox in this process. */
export type Transport = (request: ProcessorRequest) => Promise<ProcessorAnswer>;

/** Timeout of a request in milliseconds. A person waits for most requests. */
const wholeMs = 15_000;

/** Maximum bytes of a response. A list of a customer's subscriptions has some kilobytes. */
const maxBytes = 1_048_576;

/**
 * Creates an HTTP transport to the operator's processor. Redirects are rejected, because their target would receive the
 * keys.
 */
export function httpTransport(base: string, outgoing: OutgoingOptions = {}, timeoutMs = wholeMs): Transport {
  const dispatcher = operatorDispatcher(base, outgoing);
  return async ({ method, path, headers, body }) => {
    const response = await loadUndici().fetch(`${base}${path}`, {
      method,
      headers,
      redirect: "error",
      ...(dispatcher && { dispatcher }),
      signal: AbortSignal.timeout(timeoutMs),
      ...(body !== "" && { body }),
    });
    const parts: Uint8Array[] = [];
    let bytes = 0;
    for await (const part of response.body ?? []) {
      bytes += part.length;
      if (bytes > maxBytes) throw new Error(`expected at most ${maxBytes} bytes from the payment processor`);
      parts.push(part);
    }
    const text = Buffer.concat(parts).toString();
    return { status: response.status, headers: Object.fromEntries(response.headers), body: text };
  };
}
