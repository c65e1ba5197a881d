import { addDecimals, compareDecimals } from "../processors/decimal.ts";
import { btcPaySignature } from "../processors/processor-signature.ts";
import type { SandboxObject } from "./sandbox-store.ts";
import { SandboxRefusal, type SandboxTools } from "./sandbox-tools.ts";

export const sandboxStore = "sandbox";

/** Price of one unit, in any currency. */
export const sandboxRates: Readonly<Record<string, string>> = { BTC: "93988.57", XMR: "158.2", LTC: "91.75" };

export const sandboxCurrencies = Object.keys(sandboxRates).map((code) => code.toLowerCase());

const isOpen = ({ status }: SandboxObject): boolean => status === "New";

export type BtcPayInvoices = ReturnType<typeof createBtcPayInvoices>;

/** Creates functions for the invoices of the sandbox. `pay` and `end` send webhooks; the expiry in `find` does not. */
export function createBtcPayInvoices(tools: SandboxTools) {
  const { store, notify, nextId, seconds, change, pagesUrl, secret } = tools;

  async function sendNotice(type: string, invoice: SandboxObject): Promise<void> {
    const deliveryId = nextId("delivery");
    const ids = { deliveryId, webhookId: "webhook", originalDeliveryId: deliveryId, isRedelivery: false };
    const body = JSON.stringify({ ...ids, type, timestamp: seconds(), storeId: sandboxStore, invoiceId: invoice.id });
    await notify("btcpay", { "btcpay-sig": btcPaySignature(secret, body) }, body);
  }

  /** Finds an invoice. A `New` invoice becomes `Expired` after its expiration time. */
  async function find(id: string): Promise<SandboxObject | undefined> {
    const invoice = await store.get(id);
    if (invoice?.object !== "btc_invoice") return undefined;
    if (!isOpen(invoice) || invoice.expirationTime > seconds()) return invoice;
    const additionalStatus = invoice.paid === "0" ? "None" : "PaidPartial";
    return change("btc_invoice", invoice, { status: "Expired", additionalStatus });
  }

  async function need(id: string): Promise<SandboxObject> {
    const invoice = await find(id);
    if (!invoice) throw new SandboxRefusal(404, "The invoice was not found");
    return invoice;
  }

  async function make({ amount, currency, metadata = {}, checkout = {} }: SandboxObject): Promise<SandboxObject> {
    const methods: string[] = checkout.paymentMethods ?? [`${currency}-CHAIN`];
    if (sandboxRates[currency] === undefined || !methods.includes(`${currency}-CHAIN`))
      throw new SandboxRefusal(400, `no payment method for ${currency}`);
    const id = nextId("inv");
    const invoice = {
      id,
      object: "btc_invoice",
      storeId: sandboxStore,
      amount,
      currency,
      metadata,
      status: "New",
      additionalStatus: "None",
      checkoutLink: `${pagesUrl}/${id}`,
      redirectURL: checkout.redirectURL,
      createdTime: seconds(),
      expirationTime: seconds() + (checkout.expirationMinutes ?? 15) * 60,
      address: `sandbox1q${id.slice(-24)}`,
      paid: "0",
      payments: [],
    };
    await store.put("btc_invoice", invoice);
    return invoice;
  }

  async function pay(invoice: SandboxObject, amount: string): Promise<void> {
    const payments = [...invoice.payments, { id: `${nextId("tx")}-0`, value: amount, status: "Processing" }];
    const paid = addDecimals(invoice.paid, amount);
    const order = compareDecimals(paid, invoice.amount);
    const isLate = !isOpen(invoice);
    const additionalStatus = isLate ? "PaidLate" : order > 0 ? "PaidOver" : order < 0 ? "PaidPartial" : "None";
    const status = isLate || order < 0 ? invoice.status : "Processing";
    const changed = await change("btc_invoice", invoice, { payments, paid, status, additionalStatus });
    await sendNotice("InvoiceReceivedPayment", changed);
    if (status === "Processing") await sendNotice("InvoiceProcessing", changed);
  }

  /** Changes the status of an invoice, and sends a webhook. */
  async function end(
    invoice: SandboxObject,
    status: "Settled" | "Expired" | "Invalid",
    additionalStatus = invoice.additionalStatus,
  ): Promise<SandboxObject> {
    const ended = await change("btc_invoice", invoice, { status, additionalStatus });
    await sendNotice(`Invoice${status}`, ended);
    return ended;
  }

  return { find, need, make, pay, end };
}
