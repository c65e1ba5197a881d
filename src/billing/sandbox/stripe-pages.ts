import type { SandboxObject } from "./sandbox-store.ts";
import type { SandboxPage } from "./sandbox-tools.ts";
import type { StripeObjects } from "./stripe-objects.ts";

const amountText = (cents: number, currency: string): string => `${(cents / 100).toFixed(2)} ${currency.toUpperCase()}`;

const money = ({ unit_amount, currency, recurring }: SandboxObject): string =>
  `${amountText(unit_amount, currency)} a ${recurring.interval}`;

/** Returns the page on which a customer pays. */
export async function checkoutPage(stripe: StripeObjects, session: SandboxObject): Promise<SandboxPage> {
  const { status, price, success_url, cancel_url } = session;
  const { nickname, ...cost } = await stripe.need(price, "price");
  const isOpen = status === "open";
  return {
    title: isOpen ? "Pay by card" : `This checkout is ${status}`,
    lines: [`${nickname}: ${money(cost)}`, "This is a sandbox: no money moves."],
    actions: isOpen ? { pay: "Pay", decline: "Decline the card" } : {},
    backUrl: status === "complete" ? success_url : cancel_url,
  };
}

/** Returns the page on which a customer changes the subscription. */
export async function portalPage(stripe: StripeObjects, { customer, return_url }: SandboxObject): Promise<SandboxPage> {
  const subscription = await stripe.ofCustomer(customer);
  const lines = ["This is a sandbox: no money moves."];
  const page = { title: "Your subscription", backUrl: return_url };
  if (!subscription) return { ...page, lines: ["There is no subscription.", ...lines], actions: {} };
  const { status, cancel_at_period_end: ends, items } = subscription;
  const [{ price, current_period_end }] = items.data;
  const invoice = await stripe.need(subscription.latest_invoice, "invoice");
  const isPaid = invoice.status === "paid";
  const next = subscription.next_price;
  const until = new Date(current_period_end * 1_000).toISOString().slice(0, 10);
  return {
    ...page,
    lines: [
      `${price.nickname}: ${money(price)}`,
      `Status: ${status}. It is paid until ${until}${ends ? ", and ends then" : ""}.`,
      ...(isPaid ? [`Receipt ${invoice.id}: ${amountText(invoice.amount_paid, invoice.currency)} paid by card.`] : []),
      ...(next ? [`From then on ${next.nickname}: ${money(next)}.`] : []),
      ...lines,
    ],
    actions: {
      ...(ends ? { resume: "Resume the subscription" } : { cancel: "Cancel at the end of the paid period" }),
      renew: "Make the next payment succeed",
      fail: "Make the next payment fail",
      ...((await stripe.priceBeside(subscription, true)) && {
        raise: "Change to a higher tier, and pay the difference now",
        raise_declined: "Change to a higher tier, and decline the card",
      }),
      ...((await stripe.priceBeside(subscription, false)) && { lower: "Change to a lower tier" }),
      ...(!isPaid && { settle: "Pay the open invoice" }),
      refund: "Refund the last payment",
      dispute: "Lose the last payment in a dispute",
      end: "Cancel at once",
    },
  };
}
