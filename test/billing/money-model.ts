import { addDecimals, compareDecimals } from "../../src/billing/processors/decimal.ts";

/** Paid tiers in ascending order. */
export const soldTiers = ["personal", "api_builder", "api_scale"] as const;
const ranks: readonly string[] = ["free", ...soldTiers];
const rankOf = (tier: string): number => ranks.indexOf(tier);

const day = 86_400_000;

/** Returns the length of calendar months in milliseconds, calculated differently from the service on purpose. */
function monthsFrom(time: number, months: number): number {
  const date = new Date(time);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth() + months];
  const daysOf = (of: number): number => Math.round((Date.UTC(year, of + 1, 1) - Date.UTC(year, of, 1)) / day);
  const kept = Math.min(date.getUTCDate(), daysOf(month));
  return Date.UTC(year, month, kept) + (time % day) - time;
}

/** Months of an order, as milliseconds in each state. */
export interface Block {
  readonly id: string;
  readonly tier: string;
  readonly months: number;
  readonly createdAt: number;
  /** Bought milliseconds, set when the months begin, and milliseconds that the operator has added. */
  bought: number;
  extended: number;
  served: number;
  left: number;
  /** Milliseconds lost by a refund. */
  forfeited: number;
  hasBegun: boolean;
  hasEnded: boolean;
}

/** Expected state of an order. */
export interface Order {
  readonly id: string;
  readonly tier: string;
  readonly months: number;
  readonly cents: number;
  readonly amount: string;
  readonly createdAt: number;
  readonly url: string;
  status: string;
  failure: string | null;
  quoteEndsAt: number;
  /** Expected status of the processor's invoice. */
  invoice: "" | "New" | "Processing" | "Settled" | "Expired" | "Invalid";
  invoiceEndsAt: number;
  paid: string;
  irregularity: string | null;
  refundedCents: number;
}

/** Expected state of a subscription. While a change is unpaid, `priced` is the new tier and `tier` still applies. */
export interface Card {
  tier: string;
  priced: string;
  next: string | undefined;
  status: string;
  /** End of the tier after a failed payment. */
  until: number | undefined;
  isInvoicePaid: boolean;
}

/** Purchases and effective tiers of an account, derived from the rules only. */
export class MoneyModel {
  now: number;
  arranged = "free";
  readonly blocks: Block[] = [];
  orders: Order[] = [];
  readonly cards: Card[] = [];

  constructor(now: number) {
    this.now = now;
  }

  get open(): Order | undefined {
    return this.orders.find(({ status }) => status === "awaiting_payment" || status === "confirming");
  }

  get card(): Card | undefined {
    return this.cards.find(({ status }) => status !== "ended");
  }

  /** Returns the effective tier. Among equal tiers, the operator's precedes the card's, then the oldest months. */
  serving(): { tier: string; block: Block | undefined } {
    const { card } = this;
    const cardTier = card && (card.until === undefined || card.until > this.now) ? card.tier : "free";
    const free = rankOf(cardTier) > rankOf(this.arranged) ? cardTier : this.arranged;
    let block: Block | undefined;
    for (const each of this.blocks) if (!each.hasEnded && rankOf(each.tier) > rankOf(block?.tier ?? free)) block = each;
    return { tier: block?.tier ?? free, block };
  }

  /** Advances the time from one expiry to the next. */
  passTo(time: number): void {
    while (this.now < time) {
      const { block } = this.begin();
      const until = this.card?.until;
      const ends = [time, block ? this.now + block.left : time, until !== undefined && until > this.now ? until : time];
      const next = Math.min(...ends);
      if (block) {
        block.served += next - this.now;
        block.left -= next - this.now;
        if (block.left === 0) block.hasEnded = true;
      }
      this.now = next;
    }
    this.begin();
  }

  /** Starts the serving months unless they already run. */
  begin(): { block: Block | undefined } {
    const { block } = this.serving();
    if (block && !block.hasBegun) {
      block.hasBegun = true;
      block.bought = monthsFrom(this.now, block.months);
      block.left = block.bought;
    }
    return { block };
  }

  /** Applies the service's lookup of an order. */
  look(order: Order): void {
    if (order.invoice === "New" && order.invoiceEndsAt <= this.now) order.invoice = "Expired";
    const isOpen = order === this.open;
    if (isOpen && order.invoice === "Processing") order.status = "confirming";
    if (isOpen && order.invoice === "Settled") this.#buy(order);
    if (isOpen && (order.invoice === "Expired" || order.invoice === "Invalid")) {
      order.status = "failed";
      order.failure = order.invoice === "Expired" ? "expired" : "processor_failed";
    }
    if (order.status === "cancelled" && order.invoice === "New") order.invoice = "Invalid";
    if (compareDecimals(order.paid, "0") === 0 || order === this.open) return;
    const left = compareDecimals(order.paid, order.amount);
    if (order.status === "paid") order.irregularity = left > 0 ? "too_much" : order.irregularity;
    else order.irregularity = left < 0 ? "too_little" : "too_late";
  }

  /** Quotes are deleted after 30 days. */
  forgetQuotes(): void {
    this.orders = this.orders.filter(
      ({ status, quoteEndsAt }) => status !== "quoted" || quoteEndsAt >= this.now - 30 * day,
    );
  }

  #buy(order: Order): void {
    const { id, tier, months } = order;
    order.status = "paid";
    const nothing = { bought: 0, extended: 0, served: 0, left: 0, forfeited: 0, hasBegun: false, hasEnded: false };
    this.blocks.push({ id, tier, months, createdAt: this.now, ...nothing });
    this.begin();
  }

  pay(order: Order, amount: string): void {
    const isOpen = order.invoice === "New";
    order.paid = addDecimals(order.paid, amount);
    if (isOpen && compareDecimals(order.paid, order.amount) >= 0) order.invoice = "Processing";
  }

  refund(order: Order, cents: number): void {
    order.refundedCents = cents;
    const block = this.blocks.find(({ id }) => id === order.id);
    if (!block || block.hasEnded) return;
    block.forfeited = block.left;
    block.left = 0;
    block.hasEnded = true;
    this.begin();
  }
}
