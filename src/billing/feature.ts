import { BillingService } from "../gen/pilothouse/v1/billing_pb.ts";
import { defineService } from "../kernel/feature.ts";
import type { Status } from "../status/status.ts";
import { type CardSyncParts, createCardSync } from "./card-sync.ts";
import { type CardWebhookParts, handleCardWebhook } from "./card-webhooks.ts";
import { createProcessorCheck } from "./processor-check.ts";
import { createReconciliation, type ReconciliationParts } from "./reconciliation.ts";
import { type BillingServiceParts, createBillingService } from "./service.ts";

type BillingParts = BillingServiceParts &
  CardSyncParts &
  CardWebhookParts &
  ReconciliationParts & { readonly status: Status };

/** Card subscriptions, the overview of an account's billing, and the status check of the payment processors. */
export const billing = defineService({
  service: BillingService,
  create(parts: BillingParts) {
    const { card, onWebhook } = parts.processors;
    if (card) onWebhook("stripe", (notice) => handleCardWebhook(parts, card, notice));
    const check = createProcessorCheck(parts.processors, parts.config.prices);
    if (check) parts.status.sources.watch(check);
    return {
      methods: createBillingService(parts),
      jobKinds: [createCardSync(parts)],
      ...createReconciliation(parts),
    };
  },
});
