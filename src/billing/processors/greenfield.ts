import { plainDecimal } from "./decimal.ts";
import type { Transport } from "./transport.ts";

/** Minutes. `open`: an invoice can be paid. `monitored`: after that, the processor detects late payments. */
const minutes = { open: 60, monitored: 1_440 };

/** An invoice of BTCPay Server. */
export interface Invoice {
  readonly id: string;
  readonly storeId: string;
  readonly status: "New" | "Processing" | "Settled" | "Expired" | "Invalid";
  readonly amount: string;
  /** Upper-case code of the cryptocurrency. */
  readonly currency: string;
  readonly checkoutLink: string;
  /** Unix time in milliseconds. */
  readonly expiresAt: number;
}

/** Payment details of an invoice, and the amount paid. */
export interface InvoicePayment {
  readonly address: string;
  readonly uri: string;
  /** Amount paid, including unconfirmed payments, as a decimal number. */
  readonly paid: string;
  readonly transactionIds: readonly string[];
}

/** The parts of BTCPay Server's Greenfield API that we use. */
export interface Greenfield {
  /** Returns the price of one unit of a cryptocurrency. */
  rate(crypto: string, currency: string): Promise<string>;
  createInvoice(order: { id: string; amount: string; crypto: string; redirectUrl: string }): Promise<Invoice>;
  findInvoice(orderId: string): Promise<Invoice | undefined>;
  invoice(id: string): Promise<Invoice>;
  payment(id: string, crypto: string): Promise<InvoicePayment>;
  /** Marks an invoice as invalid. The invoice then accepts no further payments. */
  invalidate(id: string): Promise<void>;
}

// biome-ignore lint/suspicious/noExplicitAny: the boundary at which foreign JSON is read field by field.
type Json = any;

const longest = 2_048;

function text(value: unknown, name: string): string {
  if (typeof value === "string" && value.length <= longest) return value;
  throw new Error(`the payment processor returned no ${name}`);
}

const decimal = (value: unknown, name: string): string => plainDecimal(text(value, name));

const statuses = ["New", "Processing", "Settled", "Expired", "Invalid"] as const;

function toInvoice(json: Json): Invoice {
  const status = statuses.find((known) => known === json?.status);
  const seconds: unknown = json?.expirationTime;
  if (!status || typeof seconds !== "number") throw new Error("the payment processor returned no valid invoice");
  return {
    id: text(json.id, "id"),
    storeId: text(json.storeId, "store"),
    status,
    amount: decimal(json.amount, "amount"),
    currency: text(json.currency, "currency"),
    checkoutLink: text(json.checkoutLink, "checkout link"),
    expiresAt: seconds * 1_000,
  };
}

/** Strips the output index from a payment's identifier, `<transaction>-<output>`. */
const transactionOf = (id: string): string => id.replace(/-\d+$/, "");

function toPayment(json: Json, crypto: string): InvoicePayment {
  const wanted = `${crypto.toUpperCase()}-CHAIN`;
  const method: Json = Array.isArray(json) ? json.find(({ paymentMethodId }) => paymentMethodId === wanted) : undefined;
  if (!method) throw new Error(`the payment processor does not accept ${crypto}`);
  const payments: Json[] = Array.isArray(method.payments) ? method.payments.slice(0, 100) : [];
  const ids = payments.map(({ id }) => transactionOf(text(id, "payment")));
  return {
    address: text(method.destination, "address"),
    uri: text(method.paymentLink, "link"),
    paid: decimal(method.paymentMethodPaid, "sum"),
    transactionIds: [...new Set(ids)],
  };
}

export function createGreenfield(options: { store: string; apiKey: string; transport: Transport }): Greenfield {
  const { store, apiKey, transport } = options;
  const base = `/api/v1/stores/${encodeURIComponent(store)}`;
  const headers = { authorization: `token ${apiKey}`, "content-type": "application/json", accept: "application/json" };

  async function request(method: string, path: string, body?: object): Promise<Json> {
    const sent = body === undefined ? "" : JSON.stringify(body);
    const answer = await transport({ method, path: `${base}${path}`, headers, body: sent });
    if (answer.status < 200 || answer.status > 299)
      throw new Error(`the payment processor responded to ${method} with status ${answer.status}`);
    return answer.body === "" ? undefined : JSON.parse(answer.body);
  }

  const pathOf = (id: string): string => `/invoices/${encodeURIComponent(id)}`;
  return {
    async rate(crypto, currency) {
      const pair = `${crypto}_${currency}`.toUpperCase();
      const rates = await request("GET", `/rates?currencyPair=${pair}`);
      const found: Json = Array.isArray(rates) ? rates.find(({ currencyPair }) => currencyPair === pair) : undefined;
      return decimal(found?.rate, "rate");
    },
    createInvoice: async ({ id, amount, crypto, redirectUrl }) =>
      toInvoice(
        await request("POST", "/invoices", {
          amount,
          currency: crypto.toUpperCase(),
          metadata: { orderId: id },
          checkout: {
            expirationMinutes: minutes.open,
            monitoringMinutes: minutes.monitored,
            paymentTolerance: 0,
            paymentMethods: [`${crypto.toUpperCase()}-CHAIN`],
            redirectURL: redirectUrl,
          },
        }),
      ),
    async findInvoice(orderId) {
      const found = await request("GET", `/invoices?orderId=${encodeURIComponent(orderId)}&take=1`);
      return Array.isArray(found) && found.length > 0 ? toInvoice(found[0]) : undefined;
    },
    invoice: async (id) => toInvoice(await request("GET", pathOf(id))),
    payment: async (id, crypto) => toPayment(await request("GET", `${pathOf(id)}/payment-methods`), crypto),
    async invalidate(id) {
      await request("POST", `${pathOf(id)}/status`, { status: "Invalid" });
    },
  };
}
