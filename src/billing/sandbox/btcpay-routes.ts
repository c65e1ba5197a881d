import { type BtcPayInvoices, sandboxRates, sandboxStore } from "./btcpay-invoices.ts";
import { readGreenfield } from "./greenfield-rules.ts";
import type { SandboxObject } from "./sandbox-store.ts";
import { type Routes, SandboxRefusal, type SandboxTools } from "./sandbox-tools.ts";

export const sandboxKey = "sandbox";

/** Payment URI by coin. */
const paymentLinks: Readonly<Record<string, (address: string, amount: string) => string>> = {
  BTC: (address, amount) => `bitcoin:${address}?amount=${amount}`,
  LTC: (address, amount) => `litecoin:${address}?amount=${amount}`,
  XMR: (address, amount) => `monero:${address}?tx_amount=${amount}`,
};

const methodsOf = ({ currency, address, amount, paid, payments }: SandboxObject): SandboxObject[] => [
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

/** Creates the request handler of the sandbox's BTCPay Server. */
export const btcPayRoutes =
  (invoices: BtcPayInvoices, { store }: SandboxTools): Routes =>
  async (request) => {
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
        return [{ currencyPair, errors: [], rate: sandboxRates[currencyPair.split("_")[0] ?? ""] ?? null }];
      }
      case "POST invoices":
        return invoices.make(sent);
      case "GET invoices": {
        const wanted = url.searchParams.get("orderId");
        return (await store.list("btc_invoice")).filter(({ metadata }) => metadata.orderId === wanted).slice(0, 1);
      }
      case "GET invoices/:id":
        return invoices.need(id);
      case "GET invoices/:id/payment-methods":
        return methodsOf(await invoices.need(id));
      case "POST invoices/:id/status": {
        const invoice = await invoices.need(id);
        if (invoice.status === "Settled" && sent.status === "Invalid")
          throw new SandboxRefusal(422, "a settled invoice cannot be marked as invalid");
        return invoices.end(invoice, sent.status, "Marked");
      }
      default:
        return undefined;
    }
  };
