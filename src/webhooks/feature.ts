import { WebhookService } from "../gen/pilothouse/v1/webhook_pb.ts";
import { defineService } from "../kernel/feature.ts";
import { lowestId } from "../platform/ids.ts";
import { deleteInBatches, sweepTask } from "../platform/sweep-task.ts";
import type { Status } from "../status/status.ts";
import { type ClosingParts, createClosingJob, createFailingWatch } from "./closing.ts";
import { createDeliveries, type DeliveriesParts } from "./deliveries.ts";
import { createDeliveryLag } from "./delivery-lag.ts";
import { createDeliveryNotices } from "./delivery-notices.ts";
import { deleteOldDeliveries } from "./delivery-settlement.ts";
import { createFanOut, createLaterFanOut, type FanOutParts } from "./fan-out.ts";
import { createWebhookService, type WebhookServiceParts } from "./service.ts";

type WebhookParts = WebhookServiceParts &
  Omit<FanOutParts & DeliveriesParts, "notices"> &
  ClosingParts & { readonly status: Status };

/** Milliseconds for which deliveries are kept. */
const keptFor = 30 * 86_400_000;

export const webhooks = defineService({
  service: WebhookService,
  create(given: WebhookParts) {
    const parts = { ...given, notices: createDeliveryNotices(given) };
    parts.status.sources.watch(createDeliveryLag(parts));
    const fanOut = createFanOut(parts);
    return {
      methods: createWebhookService(parts),
      jobKinds: [createLaterFanOut(parts), createDeliveries(parts), createClosingJob(parts)],
      background: [fanOut],
      dueTasks: [fanOut.poll, createFailingWatch(parts)],
      jobs: [
        sweepTask(async () => {
          const before = lowestId("dlv", parts.clock.now() - keptFor);
          await deleteInBatches((limit) => deleteOldDeliveries(parts.db, before, limit));
        }, "failed to delete old webhook deliveries"),
      ],
    };
  },
});
