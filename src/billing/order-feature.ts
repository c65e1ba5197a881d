import { CryptoOrderService } from "../gen/pilothouse/v1/crypto_order_pb.ts";
import { defineService } from "../kernel/feature.ts";
import { createOrderService, type OrderServiceParts } from "./order-service.ts";
import { deleteQuotesBefore, findDueOrders, ordersAreDue, setOrderCheckAt } from "./order-store.ts";
import { createOrderSync, type OrderSyncParts, orderJob } from "./order-sync.ts";
import { createOrderTransitions, type OrderTransitionParts } from "./order-transitions.ts";
import { handleOrderWebhook, type OrderWebhookParts } from "./order-webhooks.ts";

type OrderParts = Omit<OrderServiceParts & OrderSyncParts, "move"> & OrderTransitionParts & OrderWebhookParts;

const minute = 60_000;

/** Milliseconds for which an expired quote is kept. */
const quotesKeptFor = 30 * 1_440 * minute;

/** Orders paid with a cryptocurrency. */
export const cryptoOrders = defineService({
  service: CryptoOrderService,
  create(parts: OrderParts) {
    const { db, clock, jobQueues, processors } = parts;
    const { crypto, onWebhook } = processors;
    const move = createOrderTransitions(parts);
    if (crypto) onWebhook("btcpay", (notice) => handleOrderWebhook(parts, crypto, notice));

    async function checkDue(): Promise<void> {
      const now = clock.now();
      for (const { id } of await findDueOrders(db, new Date(now)))
        await db.transaction(async (tx) => {
          setOrderCheckAt(tx, id, new Date(now + 5 * minute));
          jobQueues.enqueue(tx, orderJob, { queue: id, data: {} });
        });
    }

    return {
      methods: createOrderService({ ...parts, move }),
      jobKinds: [createOrderSync({ ...parts, move })],
      dueTasks: [
        {
          isDue: () => ordersAreDue(new Date(clock.now())),
          run: checkDue,
          failureMessage: "failed to schedule polls of crypto orders",
        },
      ],
      jobs: [
        {
          run: () => deleteQuotesBefore(db, new Date(clock.now() - quotesKeptFor)),
          every: 60 * minute,
          failureMessage: "failed to delete old quotes",
        },
      ],
    };
  },
});
