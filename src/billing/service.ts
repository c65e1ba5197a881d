import { create } from "@bufbuild/protobuf";
import { type QuotaParts, readQuotas } from "../account-api/quotas.ts";
import { findAccount } from "../accounts/store.ts";
import { BillingSchema, type BillingService, PortalSessionSchema } from "../gen/pilothouse/v1/billing_pb.ts";
import type { ServiceImplementation } from "../kernel/registry.ts";
import { toTierMessage } from "../limits/tier-message.ts";
import type { Config } from "../platform/config.ts";
import { fail } from "../platform/errors.ts";
import { findAccountSubscription } from "./account-subscription.ts";
import { createCardCatalog } from "./card-catalog.ts";
import { createCardCheckout, needCard, readUrl } from "./card-checkout.ts";
import { findOpenOrder } from "./order-store.ts";
import { awaitProcessor, type Processors } from "./processors.ts";
import { findCustomer, listSubscriptions } from "./store.ts";

export interface BillingServiceParts extends QuotaParts {
  readonly config: Pick<Config, "prices" | "publicUrl">;
  readonly processors: Processors;
}

export function createBillingService(parts: BillingServiceParts): ServiceImplementation<typeof BillingService> {
  const { db, config, processors } = parts;
  const catalog = createCardCatalog({ db, prices: config.prices });

  return {
    createCheckoutSession: createCardCheckout({ ...parts, catalog }),
    async createPortalSession(call, { returnUrl }) {
      const card = needCard(processors);
      const { accountId } = call.principal;
      const customer = await findCustomer(db, accountId, card.isSandbox);
      const paid = await listSubscriptions(db, accountId, card.isSandbox);
      if (!customer || paid.length === 0) throw fail("conflict", {}, { detail: "the account has never paid by card" });
      const back = readUrl("return_url", returnUrl, `${config.publicUrl}/console/billing`);
      const open = async () =>
        card.client.billingPortal.sessions.create(
          { customer: customer.id, return_url: back, configuration: await catalog.portal(card) },
          { idempotencyKey: call.ids.next("bps") },
        );
      const session = await awaitProcessor(open());
      return call.commit(async (tx) => {
        call.audit(tx, { subject: customer.id });
        return create(PortalSessionSchema, { id: session.id, url: session.url, livemode: card.livemode });
      });
    },
    async get({ principal: { accountId } }) {
      const account = await findAccount(db, accountId);
      const [quotas, subscription, openOrder] = await Promise.all([
        readQuotas(parts, account),
        findAccountSubscription(parts, accountId, account.tier),
        findOpenOrder(db, accountId),
      ]);
      return create(BillingSchema, {
        tier: toTierMessage(account.tier),
        quotas,
        livemode: processors.livemode,
        ...(subscription && { subscription }),
        ...(openOrder !== undefined && { openCryptoOrderId: openOrder }),
      });
    },
  };
}
