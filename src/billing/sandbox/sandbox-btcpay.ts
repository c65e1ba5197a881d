import { addDecimals } from "../processors/decimal.ts";
import { createBtcPayInvoices } from "./btcpay-invoices.ts";
import { btcPayRoutes } from "./btcpay-routes.ts";
import type { SandboxObject } from "./sandbox-store.ts";
import { type SandboxProcessor, type SandboxTools, transportOf } from "./sandbox-tools.ts";

/** Button labels on the page of an invoice, by action. */
function actionsOf({ status }: SandboxObject): Record<string, string> {
  if (status === "Processing") return { settle: "Confirm the payment", fail: "Fail the payment" };
  if (status === "New")
    return {
      pay: "Pay",
      over: "Pay twice as much",
      little: "Pay too little",
      expire: "Let the invoice expire",
      fail: "Fail the invoice",
    };
  return { pay: "Pay after the invoice has ended" };
}

/** Creates a sandbox of the parts of BTCPay Server's API that we use. */
export function createSandboxCrypto(tools: SandboxTools): SandboxProcessor {
  const invoices = createBtcPayInvoices(tools);
  return {
    transport: transportOf(btcPayRoutes(invoices, tools), (status, message) => ({ code: String(status), message })),
    async page(id) {
      const invoice = await invoices.find(id);
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
      const invoice = await invoices.find(id);
      if (!invoice || !Object.hasOwn(actionsOf(invoice), action)) return;
      if (action === "pay") await invoices.pay(invoice, invoice.amount);
      if (action === "over") await invoices.pay(invoice, addDecimals(invoice.amount, invoice.amount));
      if (action === "little") await invoices.pay(invoice, "0.00000001");
      if (action === "settle") await invoices.end(invoice, "Settled");
      if (action === "expire") await invoices.end(invoice, "Expired");
      if (action === "fail") await invoices.end(invoice, "Invalid");
    },
  };
}
