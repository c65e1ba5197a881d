import type { JobQueues } from "../jobs/job-queues.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { findOrderOfInvoice } from "./order-store.ts";
import { orderJob } from "./order-sync.ts";
import { isBtcPaySigned } from "./processors/processor-signature.ts";
import type { CryptoProcessor, ProcessorWebhook } from "./processors.ts";
import { saveProcessorWebhook } from "./store.ts";

export interface OrderWebhookParts extends Pick<PlatformParts, "db" | "clock"> {
  readonly jobQueues: JobQueues;
}

/** Parses a BTCPay webhook. Returns undefined if the body is malformed or lacks a delivery or an invoice. */
function read(body: Buffer): { readonly id: string; readonly invoiceId: string; readonly kind: string } | undefined {
  let json: unknown;
  try {
    json = JSON.parse(body.toString());
  } catch {
    return undefined;
  }
  if (typeof json !== "object" || json === null) return undefined;
  const textOf = (name: string): string => {
    const value: unknown = Reflect.get(json, name);
    return typeof value === "string" && value.length <= 200 ? value : "";
  };
  // A redelivery has a new `deliveryId`; `originalDeliveryId` is that of the first delivery.
  const id = textOf("originalDeliveryId") || textOf("deliveryId");
  const invoiceId = textOf("invoiceId");
  return id && invoiceId ? { id, invoiceId, kind: textOf("type") } : undefined;
}

/**
 * Handles a BTCPay Server webhook by scheduling a sync of the order. Ignores unknown invoices. Returns false if the
 * signature or the body is invalid.
 */
export async function handleOrderWebhook(
  { db, clock, jobQueues }: OrderWebhookParts,
  { webhookSecret, isSandbox }: CryptoProcessor,
  { headers, body }: ProcessorWebhook,
): Promise<boolean> {
  if (!isBtcPaySigned(webhookSecret, body, headers["btcpay-sig"])) return false;
  const notice = read(body);
  if (!notice) return false;
  const order = await findOrderOfInvoice(db, notice.invoiceId, isSandbox);
  if (!order) return true;
  await db.transaction(async (tx) => {
    const record = { id: `btcpay:${notice.id}`, processor: "btcpay", kind: notice.kind, subject: order.id };
    if (!(await saveProcessorWebhook(tx, { ...record, now: new Date(clock.now()) }))) return;
    jobQueues.enqueue(tx, orderJob, { queue: order.id, data: {} });
  });
  return true;
}
