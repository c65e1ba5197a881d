import { randomBytes } from "node:crypto";
import type Stripe from "stripe";
import type { Config } from "../platform/config.ts";
import { fail } from "../platform/errors.ts";
import type { OutgoingOptions } from "../platform/outgoing/outgoing-options.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { createGreenfield, type Greenfield } from "./processors/greenfield.ts";
import { createStripeClient } from "./processors/stripe-client.ts";
import { httpTransport } from "./processors/transport.ts";
import { sandboxCurrencies, sandboxStore } from "./sandbox/btcpay-invoices.ts";
import { sandboxKey } from "./sandbox/btcpay-routes.ts";
import { createSandbox, type PaymentSandbox } from "./sandbox/sandbox.ts";
import { createSandboxStore } from "./sandbox/sandbox-store.ts";

/** Processors that send webhooks. */
export type ProcessorName = "stripe" | "btcpay";

/** A webhook as received. */
export interface ProcessorWebhook {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

/** Handles a webhook. Returns false if the webhook is not from the processor. */
export type WebhookHandler = (notice: ProcessorWebhook) => Promise<boolean>;

export interface CardProcessor {
  /** Created on first use. */
  readonly client: Stripe;
  /** Whether real money moves. */
  readonly livemode: boolean;
  readonly isSandbox: boolean;
  readonly webhookSecret: string;
}

export interface CryptoProcessor {
  readonly greenfield: Greenfield;
  readonly store: string;
  /** Lower-case codes, such as `btc`. */
  readonly currencies: readonly string[];
  readonly livemode: boolean;
  readonly isSandbox: boolean;
  readonly webhookSecret: string;
}

export interface Processors {
  readonly card: CardProcessor | undefined;
  readonly crypto: CryptoProcessor | undefined;
  /** Replaces all processors in embedded mode if none is configured. */
  readonly sandbox: PaymentSandbox | undefined;
  /** Whether payments in the sandbox grant paid tiers: true if the sandbox replaces the processors. */
  readonly countsSandbox: boolean;
  /** Whether real money moves. Without a card processor, true outside the sandbox. */
  readonly livemode: boolean;
  /** Passes a webhook to its handler. Returns false if the webhook is not from the processor or has no handler. */
  receive(processor: ProcessorName, notice: ProcessorWebhook): Promise<boolean>;
  /** Sets the handler of a processor's webhooks. */
  onWebhook(processor: ProcessorName, receive: WebhookHandler): void;
}

/** Maximum bytes of a webhook. */
export const maxProcessorWebhookBytes = 262_144;

export const noProcessor = (): Error =>
  fail("feature-unavailable", {}, { detail: "this deployment does not support this payment method: ask its operator" });

/**
 * Converts an error of a processor to a failure. The cause has only the message, because the request in the original
 * error contains keys.
 */
export function asProcessorFailure(error: unknown): Error {
  const cause = new Error(error instanceof Error ? error.message : "a payment processor has failed");
  return fail(
    "internal",
    {},
    { detail: "the payment processor failed or did not respond: try again in 5 s", retryAfter: 5, cause },
  );
}

/** Awaits a response of a processor. Converts an error with `asProcessorFailure`. */
export const awaitProcessor = <T>(response: Promise<T>): Promise<T> =>
  response.catch((error: unknown) => {
    throw asProcessorFailure(error);
  });

function withClient(own: Omit<CardProcessor, "client">, create: () => Stripe): CardProcessor {
  let client: Stripe | undefined;
  return {
    ...own,
    get client() {
      client ??= create();
      return client;
    },
  };
}

export interface ProcessorsParts extends Pick<PlatformParts, "db" | "clock"> {
  readonly config: Pick<Config, "embedded" | "publicUrl" | "stripe" | "btcPay">;
  readonly outgoing?: OutgoingOptions;
}

export function createProcessors({ config, db, clock, outgoing }: ProcessorsParts): Processors {
  const { embedded, publicUrl, stripe, btcPay } = config;
  const receivers = new Map<ProcessorName, WebhookHandler>();
  const receive = async (processor: ProcessorName, notice: ProcessorWebhook): Promise<boolean> =>
    (await receivers.get(processor)?.(notice)) ?? false;
  const countsSandbox = embedded && !stripe && !btcPay;
  const secret = randomBytes(24).toString("hex");
  const sandbox = countsSandbox
    ? createSandbox({
        store: createSandboxStore(db),
        clock,
        pagesUrl: `${publicUrl}/sandbox`,
        secret,
        async notify(processor, headers, body) {
          await receive(processor, { headers, body: Buffer.from(body) });
        },
      })
    : undefined;
  const card = (): CardProcessor | undefined => {
    if (sandbox) {
      const own = { livemode: false, isSandbox: true, webhookSecret: secret };
      return withClient(own, () => createStripeClient("sk_test_sandbox", sandbox.stripe));
    }
    if (!stripe) return undefined;
    const livemode = /^[sr]k_live_/.test(stripe.secretKey);
    const own = { livemode, isSandbox: false, webhookSecret: stripe.webhookSecret };
    return withClient(own, () => createStripeClient(stripe.secretKey, httpTransport(stripe.url, outgoing)));
  };
  const crypto = (): CryptoProcessor | undefined => {
    if (sandbox) {
      const greenfield = createGreenfield({ store: sandboxStore, apiKey: sandboxKey, transport: sandbox.btcPay });
      const own = { store: sandboxStore, currencies: sandboxCurrencies, webhookSecret: secret };
      return { ...own, greenfield, livemode: false, isSandbox: true };
    }
    if (!btcPay) return undefined;
    const { url, apiKey, store, currencies, webhookSecret } = btcPay;
    const greenfield = createGreenfield({ store, apiKey, transport: httpTransport(url, outgoing) });
    return { greenfield, store, currencies, webhookSecret, livemode: true, isSandbox: false };
  };
  const cardProcessor = card();
  return {
    card: cardProcessor,
    crypto: crypto(),
    sandbox,
    countsSandbox,
    livemode: cardProcessor?.livemode ?? !countsSandbox,
    receive,
    onWebhook: (processor, handler) => void receivers.set(processor, handler),
  };
}
