import Stripe from "stripe";
import type { ProcessorAnswer, Transport } from "./transport.ts";

type Headers = Readonly<Record<string, string | number | string[]>>;

/** A response as Stripe's client expects it. */
class Response extends Stripe.HttpClientResponse {
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

/** HTTP client for Stripe's library that uses a transport, which limits time and size. */
class Client extends Stripe.HttpClient {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    super();
    this.#transport = transport;
  }

  override getClientName(): string {
    return "pilothouse";
  }

  override async makeRequest(
    ...[, , path, method, headers, body]: Parameters<Stripe.HttpClient["makeRequest"]>
  ): Promise<Response> {
    const sent = Object.entries(headers as Headers).map(([name, value]) => [name, String(value)] as const);
    // The transport sets the length of the body itself.
    const own = sent.filter(([name]) => name.toLowerCase() !== "content-length");
    const request = { method, path, headers: Object.fromEntries(own), body: body ?? "" };
    return new Response(await this.#transport(request));
  }
}

export function createStripeClient(secretKey: string, transport: Transport): Stripe {
  return new Stripe(secretKey, { httpClient: new Client(transport), maxNetworkRetries: 1, telemetry: false });
}
