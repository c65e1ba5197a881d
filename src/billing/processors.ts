import { randomBytes } from "node:crypto";
import type Stripe from "stripe";
import type { Clock } from "../platform/clock.ts";
import type { Config } from "../platform/config.ts";
import { fail } from "../platform/errors.ts";
import type { Database } from "../platform/postgres/database.ts";
import { createGreenfield, type Greenfield } from "./processors/greenfield.ts";
import { createStripeClient } from "./processors/stripe-client.ts";
import { httpTransport } from "./processors/transport.ts";
import { createSandbox, type Sandbox } from "./sandbox/sandbox.ts";
import { sandboxCurrencies, sandboxKey, sandboxStore } from "./sandbox/sandbox-btcpay.ts";
import { createSandboxStore } from "./sandbox/sandbox-store.ts";

/** Who tells us of payments. */
export type ProcessorName = "stripe" | "btcpay";

/** Something that a processor tells of, as it came. */
export interface Notice {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

/** Takes what a processor tells of; false when it is not from there. */
export type Receive = (notice: Notice) => Promise<boolean>;

/** Who takes payments by card. */
export interface CardProcessor {
  readonly client: Stripe;
  /** What it makes is real money. */
  readonly livemode: boolean;
  readonly isSandbox: boolean;
  readonly webhookSecret: string;
}

/** Who takes payments in cryptocurrencies. */
export interface CryptoProcessor {
  readonly greenfield: Greenfield;
  readonly store: string;
  /** In lower case. */
  readonly currencies: readonly string[];
  readonly livemode: boolean;
  readonly isSandbox: boolean;
  readonly webhookSecret: string;
}

/** Who takes payments for this deployment. */
export interface Processors {
  readonly card: CardProcessor | undefined;
  readonly crypto: CryptoProcessor | undefined;
  /** Stands in for all of them: in embedded mode, where none is set. */
  readonly sandbox: Sandbox | undefined;
  /** Whether what a sandbox has made counts. */
  readonly countsSandbox: boolean;
  /** What was paid where no money moved. */
  readonly livemode: boolean;
  /** Hands a notice to whoever takes them. */
  receive(processor: ProcessorName, notice: Notice): Promise<boolean>;
  /** Says who takes the notices of a processor. */
  onNotice(processor: ProcessorName, receive: Receive): void;
}

/** The largest notice that is read, in bytes. */
export const longestNotice = 262_144;

/** The failure of what needs a processor where there is none. */
export const noProcessor = (): Error =>
  fail("feature-unavailable", {}, { detail: "this deployment takes no such payments" });

/** What a processor has failed with goes to the log by its message alone: its requests carry keys. */
export function asProcessorFailure(error: unknown): Error {
  const cause = new Error(error instanceof Error ? error.message : "a payment processor has failed");
  return fail("internal", {}, { detail: "the payment processor does not answer", retryAfter: 5, cause });
}

export interface ProcessorsParts {
  readonly config: Pick<Config, "embedded" | "publicUrl" | "stripe" | "btcPay">;
  readonly db: Database;
  readonly clock: Clock;
}

/** Makes the processors of a gateway. */
export function createProcessors({ config, db, clock }: ProcessorsParts): Processors {
  const { embedded, publicUrl, stripe, btcPay } = config;
  const receivers = new Map<ProcessorName, Receive>();
  const receive = async (processor: ProcessorName, notice: Notice): Promise<boolean> =>
    (await receivers.get(processor)?.(notice)) ?? false;
  const countsSandbox = embedded && !stripe && !btcPay;
  const secret = randomBytes(24).toString("hex");
  const sandbox = countsSandbox
    ? createSandbox({
        ...{ store: createSandboxStore(db), clock, pagesUrl: `${publicUrl}/sandbox`, secret },
        async notify(processor, headers, body) {
          await receive(processor, { headers, body: Buffer.from(body) });
        },
      })
    : undefined;
  const card = (): CardProcessor | undefined => {
    if (sandbox) {
      const client = createStripeClient("sk_test_sandbox", sandbox.stripe);
      return { client, livemode: false, isSandbox: true, webhookSecret: secret };
    }
    if (!stripe) return undefined;
    const client = createStripeClient(stripe.secretKey, httpTransport(stripe.url));
    const livemode = /^[sr]k_live_/.test(stripe.secretKey);
    return { client, livemode, isSandbox: false, webhookSecret: stripe.webhookSecret };
  };
  const crypto = (): CryptoProcessor | undefined => {
    if (sandbox) {
      const greenfield = createGreenfield({ store: sandboxStore, apiKey: sandboxKey, transport: sandbox.btcPay });
      const own = { store: sandboxStore, currencies: sandboxCurrencies, webhookSecret: secret };
      return { ...own, greenfield, livemode: false, isSandbox: true };
    }
    if (!btcPay) return undefined;
    const { url, apiKey, store, currencies, webhookSecret } = btcPay;
    const greenfield = createGreenfield({ store, apiKey, transport: httpTransport(url) });
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
    onNotice: (processor, taker) => void receivers.set(processor, taker),
  };
}
