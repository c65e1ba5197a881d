import { type BillingMail, dayText, moneyText, tierText } from "./billing-mails.ts";
import type { SubscriptionRow } from "./store.ts";

/** E-mail subjects for a subscription that became active, by previous status. */
const activeSubjects: Readonly<Partial<Record<SubscriptionRow["status"], string>>> = {
  past_due: "We have received your payment",
  cancelling: "Your subscription continues",
};

/**
 * Returns the e-mail about a change of a subscription. Returns undefined if status and tier are unchanged and the paid
 * period did not get longer, or if an unknown subscription ended.
 */
export function subscriptionMail(before: SubscriptionRow | undefined, now: SubscriptionRow): BillingMail | undefined {
  const [tier, until] = [tierText(now.tier), dayText(now.period_ends_at)];
  const cost = `${moneyText(now.amount_cents, now.currency)} a ${now.interval}`;
  if (now.status === before?.status) {
    if (now.tier !== before.tier)
      return {
        subject: "Your subscription has changed",
        lines: [`Your plan is now ${tier}. It costs ${cost} and is paid until ${until}.`],
      };
    if (now.period_ends_at <= before.period_ends_at) return undefined;
    const lines = [`We have received your payment of ${cost} for ${tier}. The subscription is paid until ${until}.`];
    return { subject: "We have received your payment", lines };
  }
  switch (now.status) {
    case "past_due":
      return {
        subject: "A payment has failed",
        lines: [
          `Your card was declined for ${tier}, ${cost}. We will try again. You keep ${tier} for 14 days.`,
          "To use another card, open Billing in the console.",
        ],
      };
    case "ended":
      return before && { subject: "Your subscription has ended", lines: [`Your subscription to ${tier} has ended.`] };
    case "cancelling":
      return {
        subject: "Your subscription will end",
        lines: [`Your subscription to ${tier} is paid until ${until}. It ends then.`],
      };
    case "active":
      return {
        subject: (before && activeSubjects[before.status]) ?? "You have subscribed",
        lines: [`${tier} costs ${cost} and is paid until ${until}.`],
      };
  }
}
