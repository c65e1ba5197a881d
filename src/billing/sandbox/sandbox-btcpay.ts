import { addDecimals, compareDecimals } from "../processors/decimal.ts";
import { btcPaySignature } from "../processors/processor-signature.ts";
import type { ProcessorRequest, Transport } from "../processors/transport.ts";
import { readGreenfield } from "./greenfield-rules.ts";
import type { Thing } from "./sandbox-store.ts";
import { type SandboxPage, SandboxRefusal, type SandboxTools, transportOf } from "./sandbox-tools.ts";

export const sandboxStore = "sandbox";

export const sandboxKey = "sandbox";

/** Price of one unit, in any currency. */
const rates: Readonly<Record<string, string>> = { BTC: "93988.57", XMR: "158.2", LTC: "91.75" };

export const sandboxCurrencies = Object.keys(rates).map((code) => code.toLowerCase());

/** Payment URI by coin. */
const paymentLinks: Readonly<Record<string, (address: string, amount: string) => string>> = {
  BTC: (address, amount) => `bitcoin:${address}?amount=${amount}`,
  LTC: (address, amount) => `litecoin:${address}?amount=${amount}`,
  XMR: (address, amount) => `monero:${address}?tx_amount=${amount}`,
};

/** Sandbox implementation of the parts of BTCPay Server's API that we use. */
export interface SandboxCrypto {
  readonly transport: Transport;
  page(id: string): Promise<SandboxPage | undefined>;
  act(id: string, action: string): Promise<void>;
}

const isOpen = ({ status }: Thing): boolean => status === "New";

export function createSandboxCrypto(tools: SandboxTools): SandboxCrypto {
  const { store, notify, nextId, seconds, change, pagesUrl, secret } = tools;

  async function sendNotice(type: string, invoice: Thing): Promise<void> {
    const deliveryId = nextId("delivery");
    const ids = { deliveryId, webhookId: "webhook", originalDeliveryId: deliveryId, isRedelivery: false };
    const body = JSON.stringify({ ...ids, type, timestamp: seconds(), storeId: sandboxStore, invoiceId: invoice.id });
    await notify("btcpay", { "btcpay-sig": btcPaySignature(secret, body) }, body);
  }

  /** Finds an invoice, and expires it if its time is over. */
  async function find(id: string): Promise<Thing | undefined> {
    const invoice = await store.get(id);
    if (invoice?.object !== "btc_invoice") return undefined;
    if (!isOpen(invoice) || invoice.expirationTime > seconds()) return invoice;
    const additionalStatus = invoice.paid === "0" ? "None" : "PaidPartial";
    return change("btc_invoice", invoice, { status: "Expired", additionalStatus });
  }

  async function need(id: string): Promise<Thing> {
    const invoice = await find(id);
    if (!invoice) throw new SandboxRefusal(404, "The invoice was not found");
    return invoice;
  }

  async function makeInvoice({ amount, currency, metadata = {}, checkout = {} }: Thing): Promise<Thing> {
    const methods: string[] = checkout.paymentMethods ?? [`${currency}-CHAIN`];
    if (rates[currency] === undefined || !methods.includes(`${currency}-CHAIN`))
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

  const methodsOf = ({ currency, address, amount, paid, payments }: Thing): Thing[] => [
    {
      paymentMethodId: `${currency}-CHAIN`,
      currency,
      destination: address,
      rate: "1",
      amount,
      paymentLink: paymentLinks[currency]?.(address, amount),
      paymentMethodPaid: paid,
      totalPaid: paid,
      payments,
    },
  ];

  const routes = async (request: ProcessorRequest & { url: URL }): Promise<Thing | undefined> => {
    const { method, url, headers } = request;
    if (headers.authorization !== `token ${sandboxKey}`)
      throw new SandboxRefusal(401, "Authentication is required for accessing this endpoint");
    const [, rest = ""] = new RegExp(`^/api/v1/stores/${sandboxStore}/(.+)$`).exec(url.pathname) ?? [];
    const [collection, id = "", verb = ""] = rest.split("/");
    const route = `${method} ${collection}${id && "/:id"}${verb && `/${verb}`}`;
    const sent = readGreenfield(route, request);
    switch (route) {
      case "GET rates": {
        const currencyPair = url.searchParams.get("currencyPair") ?? "";
        return [{ currencyPair, errors: [], rate: rates[currencyPair.split("_")[0] ?? ""] ?? null }];
      }
      case "POST invoices":
        return makeInvoice(sent);
      case "GET invoices": {
        const wanted = url.searchParams.get("orderId");
        return (await store.list("btc_invoice")).filter(({ metadata }) => metadata.orderId === wanted).slice(0, 1);
      }
      case "GET invoices/:id":
        return need(id);
      case "GET invoices/:id/payment-methods":
        return methodsOf(await need(id));
      case "POST invoices/:id/status": {
        const { status } = sent;
        const invoice = await need(id);
        if (invoice.status === "Settled" && status === "Invalid") throw new SandboxRefusal(422, "it is settled");
        const marked = await change("btc_invoice", invoice, { status, additionalStatus: "Marked" });
        await sendNotice(status === "Settled" ? "InvoiceSettled" : "InvoiceInvalid", marked);
        return marked;
      }
      default:
        return undefined;
    }
  };

  async function pay(invoice: Thing, amount: string): Promise<void> {
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

  async function end(invoice: Thing, status: string, type: string): Promise<void> {
    await sendNotice(type, await change("btc_invoice", invoice, { status }));
  }

  function actionsOf({ status }: Thing): Record<string, string> {
    if (status === "Processing") return { settle: "Confirm the payment", fail: "Fail the payment" };
    if (status === "New")
      return {
        pay: "Pay",
        over: "Pay twice as much",
        little: "Pay too little",
        expire: "Let the invoice expire",
        fail: "Fail the invoice",
      };
    return { pay: "Pay after the end" };
  }

  return {
    transport: transportOf(routes, (status, message) => ({ code: String(status), message })),
    async page(id) {
      const invoice = await find(id);
      if (!invoice) return undefined;
      const { status, additionalStatus, amount, currency, address, paid, redirectURL } = invoice;
      return {
        title: "Pay an order",
        lines: [
          `Pay ${amount} ${currency} to ${address}.`,
          `Status: ${status}${additionalStatus === "None" ? "" : ` (${additionalStatus})`}. Paid so far: ${paid} ${currency}.`,
          "This is a sandbox: no money moves.",
        ],
        actions: actionsOf(invoice),
        backUrl: redirectURL,
      };
    },
    async act(id, action) {
      const invoice = await find(id);
      if (!invoice || !Object.hasOwn(actionsOf(invoice), action)) return;
      if (action === "pay") await pay(invoice, invoice.amount);
      if (action === "over") await pay(invoice, addDecimals(invoice.amount, invoice.amount));
      if (action === "little") await pay(invoice, "0.00000001");
      if (action === "settle") await end(invoice, "Settled", "InvoiceSettled");
      if (action === "expire") await end(invoice, "Expired", "InvoiceExpired");
      if (action === "fail") await end(invoice, "Invalid", "InvoiceInvalid");
    },
  };
}
