import { create } from "@bufbuild/protobuf";
import { lockAccount } from "../accounts/store.ts";
import { HttpBodySchema } from "../gen/google/api/httpbody_pb.ts";
import {
  type CryptoOrder,
  type CryptoOrderService,
  type CryptoReceipt,
  ListCryptoOrdersResponseSchema,
  type UpdateCryptoOrderRequest,
} from "../gen/pilothouse/v1/crypto_order_pb.ts";
import type { JobQueues } from "../jobs/job-queues.ts";
import type { Call } from "../kernel/call.ts";
import type { ServiceImplementation } from "../kernel/registry.ts";
import { idPattern } from "../platform/ids.ts";
import { cutPage, readCursor } from "../platform/list-page.ts";
import {
  conflict,
  createOrderCheckout,
  needCrypto,
  noOrder,
  type OrderCheckoutParts,
  ownOrder,
} from "./order-checkout.ts";
import { orderStatusNames, toOrderMessage } from "./order-message.ts";
import { moves } from "./order-states.ts";
import { changeOrder, findOrder, isOpenOrder, listOrders, type OrderChanges } from "./order-store.ts";
import { orderJob } from "./order-sync.ts";
import type { MoveOrder } from "./order-transitions.ts";
import { compareDecimals } from "./processors/decimal.ts";
import { awaitProcessor } from "./processors.ts";
import { receiptOf, receiptPdf, receiptText } from "./receipts.ts";

export interface OrderServiceParts extends OrderCheckoutParts {
  readonly move: MoveOrder;
  readonly jobQueues: JobQueues;
}

const defaultPage = 20;

const orderId = idPattern("ord");

export function createOrderService(parts: OrderServiceParts): ServiceImplementation<typeof CryptoOrderService> {
  const { db, clock, processors, move, jobQueues } = parts;

  async function update(call: Call, request: UpdateCryptoOrderRequest): Promise<CryptoOrder> {
    const paths = new Set(request.updateMask?.paths);
    const before = await ownOrder(db, call, request.id);
    if (paths.size === 0) {
      call.markUnchanged();
      return toOrderMessage(before);
    }
    return db.transaction(async (tx) => {
      await lockAccount(tx, before.account_id);
      const order = (await findOrder(tx, request.id, before.account_id)) ?? before;
      const hasEnded = order.status !== "quoted" && !isOpenOrder(order);
      if (paths.has("refund_address") && hasEnded)
        throw conflict("the order has ended: its refund address cannot be changed");
      const relined = paths.has("invoice_lines") && order.status === "paid";
      const changes: OrderChanges = {
        ...(paths.has("refund_address") && { refund_address: request.refundAddress ?? null }),
        ...(paths.has("note") && { note: request.note ?? null }),
        ...(paths.has("invoice_lines") && { invoice_lines: request.invoiceLines }),
        ...(relined && { receipt_revision: order.receipt_revision + 1 }),
        updated_at: new Date(clock.now()),
      };
      const row = await changeOrder(tx, order.id, [order.status], changes);
      if (!row) throw noOrder();
      call.audit(tx, { subject: order.id, data: { changed: [...paths] } });
      return toOrderMessage(row);
    });
  }

  async function cancel(call: Call, id: string): Promise<CryptoOrder> {
    const order = await ownOrder(db, call, id);
    const invoiceId = order.invoice_id;
    const paid = "the order has received a payment";
    if (order.status === "awaiting_payment" && invoiceId !== null) {
      const { greenfield } = needCrypto(processors);
      const payment = await awaitProcessor(greenfield.payment(invoiceId, order.crypto_currency));
      if (compareDecimals(payment.paid, "0") !== 0) throw conflict(paid);
    }
    return call.commit(async (tx) => {
      await lockAccount(tx, order.account_id);
      const now = (await findOrder(tx, id, order.account_id)) ?? order;
      if (compareDecimals(now.crypto_amount_paid, "0") !== 0) throw conflict(paid);
      const row = await move(tx, now, moves.cancel);
      if (!row) throw conflict(`the order is ${now.status}`);
      call.audit(tx, { subject: id });
      // The job runs after the commit, and invalidates the invoice of the cancelled order.
      if (row.invoice_id !== null) jobQueues.enqueue(tx, orderJob, { queue: id, data: {} });
      return toOrderMessage(row);
    });
  }

  async function receipt(call: Call, id: string) {
    const found = receiptOf(await ownOrder(db, call, id));
    if (!found) throw conflict("the order is not paid: it gets a receipt when it is paid");
    return found;
  }

  /** Sets a distinct file name per receipt, so that a browser can save several receipts. */
  function nameFile(call: Call, { number, revision }: CryptoReceipt, extension: string): void {
    const name = `receipt-${number}${revision > 1 ? `-revision-${revision}` : ""}.${extension}`;
    call.setHeader("content-disposition", `attachment; filename="${name}"`);
  }

  return {
    ...createOrderCheckout(parts),
    async list({ principal: { accountId } }, { limit = defaultPage, cursor, status }) {
      const query = { accountId, status: orderStatusNames.toStored(status), before: readCursor(cursor, orderId) };
      const { rows, position } = cutPage(await listOrders(db, { ...query, limit: limit + 1 }), limit);
      return create(ListCryptoOrdersResponseSchema, { data: rows.map(toOrderMessage), ...position });
    },
    get: async (call, { id }) => toOrderMessage(await ownOrder(db, call, id)),
    update,
    cancel: (call, { id }) => cancel(call, id),
    getReceipt: async (call, { id }) => receipt(call, id),
    async getReceiptText(call, { id }) {
      const found = await receipt(call, id);
      const data = Buffer.from(receiptText(found));
      nameFile(call, found, "txt");
      return create(HttpBodySchema, { contentType: "text/plain; charset=utf-8", data });
    },
    async getReceiptPdf(call, { id }) {
      const found = await receipt(call, id);
      const data = await receiptPdf(found);
      nameFile(call, found, "pdf");
      return create(HttpBodySchema, { contentType: "application/pdf", data });
    },
  };
}
