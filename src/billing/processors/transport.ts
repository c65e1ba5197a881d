/** A request to a payment processor. */
export interface ProcessorRequest {
  readonly method: string;
  /** Path with query, as the processor's reference has it: `/v1/customers`. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What it answers. */
export interface ProcessorAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Carries requests to a processor: over HTTP, or to the sandbox in this process. */
export type Transport = (request: ProcessorRequest) => Promise<ProcessorAnswer>;

/** Milliseconds for an exchange: people wait for most of them. */
const wholeMs = 15_000;

/** A list of a customer's subscriptions has some kilobytes. */
const maxBytes = 1_048_576;

/** Makes a transport to a processor that the operator has named. No redirect is followed: keys would go along. */
export function httpTransport(base: string, timeoutMs = wholeMs): Transport {
  return async ({ method, path, headers, body }) => {
    const response = await fetch(`${base}${path}`, {
      ...{ method, headers, redirect: "error", signal: AbortSignal.timeout(timeoutMs) },
      ...(body !== "" && { body }),
    });
    const parts: Uint8Array[] = [];
    let bytes = 0;
    for await (const part of response.body ?? []) {
      bytes += part.length;
      if (bytes > maxBytes) throw new Error(`a payment processor answered with more than ${maxBytes} bytes`);
      parts.push(part);
    }
    const text = Buffer.concat(parts).toString();
    return { status: response.status, headers: Object.fromEntries(response.headers), body: text };
  };
}
