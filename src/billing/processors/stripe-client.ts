import { createRequire } from "node:module";
import type Stripe from "stripe";
import type { ProcessorAnswer, Transport } from "./transport.ts";

type Headers = Readonly<Record<string, string | number | string[]>>;

/** Loads Stripe's package on first use, because loading takes 170 ms of CPU. */
function loadStripe(): typeof Stripe {
  return createRequire(import.meta.url)("stripe");
}

/** Creates an HTTP client for Stripe's library that sends requests through a transport. */
function createHttpClient({ HttpClient, HttpClientResponse }: typeof Stripe, transport: Transport): Stripe.HttpClient {
  /** A response as Stripe's client expects it. */
  class Response extends HttpClientResponse {
    readonly #answer: ProcessorAnswer;

    constructor(answer: ProcessorAnswer) {
      super(answer.status, answer.headers);
      this.#answer = answer;
    }

    override getRawResponse(): ProcessorAnswer {
      return this.#answer;
    }

    override async toJSON(): Promise<unknown> {
      return JSON.parse(this.#answer.body);
    }
  }

  class Client extends HttpClient {
    override getClientName(): string {
      return "pilothouse";
    }

    override async makeRequest(
      ...[, , path, method, headers, body]: Parameters<Stripe.HttpClient["makeRequest"]>
    ): Promise<Response> {
      const sent = Object.entries(headers as Headers).map(([name, value]) => [name, String(value)] as const);
      // The transport sets the content-length header itself.
      const own = sent.filter(([name]) => name.toLowerCase() !== "content-length");
      const request = { method, path, headers: Object.fromEntries(own), body: body ?? "" };
      return new Response(await transport(request));
    }
  }

  return new Client();
}

/** Creates a client of Stripe's API. */
export function createStripeClient(secretKey: string, transport: Transport): Stripe {
  const StripeClient = loadStripe();
  const httpClient = createHttpClient(StripeClient, transport);
  return new StripeClient(secretKey, { httpClient, maxNetworkRetries: 1, telemetry: false });
}
