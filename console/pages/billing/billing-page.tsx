import { useQuery } from "@connectrpc/connect-query";
import { Bitcoin, ExternalLink } from "lucide-react";
import { useState } from "react";
import { Tier } from "../../../src/gen/pilothouse/v1/account_pb.ts";
import {
  type Billing,
  BillingInterval,
  BillingService,
  PaymentMethod,
  type Subscription,
  SubscriptionStatus,
} from "../../../src/gen/pilothouse/v1/billing_pb.ts";
import { useIsManager } from "../../api/me.ts";
import { useChange } from "../../api/queries.ts";
import { Badge, StateBadge, type States } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Card, Properties, Property } from "../../ui/card.tsx";
import { Page } from "../../ui/page.tsx";
import { Segments } from "../../ui/segments.tsx";
import { Loaded, ProblemNotice } from "../../ui/state.tsx";
import { DateOf } from "../../ui/time.tsx";
import { CryptoCheckout } from "./crypto-checkout.tsx";
import { CryptoOrders } from "./crypto-orders.tsx";
import { moneyText, tierName, tierPrice } from "./tier-words.ts";

/** Tiers on sale and their limits. */
const plans = [
  {
    tier: Tier.PERSONAL,
    about: "For one person",
    points: ["3 sessions at once", "1,200 minutes a month", "5 profiles", "Sessions up to 1 hour"],
  },
  {
    tier: Tier.API_BUILDER,
    about: "For a product",
    points: ["20 sessions at once", "20,000 minutes a month", "50 profiles", "Sessions up to 6 hours"],
  },
  {
    tier: Tier.API_SCALE,
    about: "For many users",
    points: ["100 sessions at once", "200,000 minutes a month", "500 profiles", "Sessions up to 24 hours"],
  },
] as const;

const states: States<SubscriptionStatus> = {
  [SubscriptionStatus.UNSPECIFIED]: ["Unknown", "neutral"],
  [SubscriptionStatus.ACTIVE]: ["Active", "good"],
  [SubscriptionStatus.PAST_DUE]: ["Payment due", "bad"],
  [SubscriptionStatus.CANCELLING]: ["Ends with the period", "warn"],
  [SubscriptionStatus.ENDED]: ["Ended", "neutral"],
};

const methods: Readonly<Record<PaymentMethod, string>> = {
  [PaymentMethod.UNSPECIFIED]: "",
  [PaymentMethod.CARD]: "Card",
  [PaymentMethod.CRYPTO]: "Crypto",
  [PaymentMethod.INVOICE]: "The operator, by agreement",
};

const periods: Readonly<Record<BillingInterval, string>> = {
  [BillingInterval.UNSPECIFIED]: "once",
  [BillingInterval.MONTH]: "a month",
  [BillingInterval.YEAR]: "a year",
};

/** Price of a subscription. Crypto orders are paid once, and a plan by agreement has no price here. */
function priceText({ paymentMethod, amountCents, currency, interval }: Subscription): string | undefined {
  if (paymentMethod === PaymentMethod.INVOICE) return undefined;
  return `${moneyText(amountCents, currency)} ${periods[interval ?? BillingInterval.UNSPECIFIED]}`;
}

/** Name of the end of a period. */
function endName({ status, paymentMethod }: Subscription): string {
  if (paymentMethod === PaymentMethod.CRYPTO) return "Paid until";
  return status === SubscriptionStatus.CANCELLING ? "Ends" : "Next payment";
}

/** Address of this page, to which the payment page leads back. */
const ownUrl = (): string => `${location.origin}/console/billing`;

/** Return addresses, which the API accepts only as https. Otherwise the payment page leads to a page of the service. */
const returnUrls = () => (location.protocol === "https:" ? { successUrl: ownUrl(), cancelUrl: ownUrl() } : {});

/** Opens the portal of the payment processor, which has the receipts and changes the plan of a card subscription. */
function usePortal() {
  const { run, ...portal } = useChange(BillingService.method.createPortalSession, {
    onDone: ({ url }) => location.assign(url),
  });
  return { ...portal, open: (): void => run(location.protocol === "https:" ? { returnUrl: ownUrl() } : {}) };
}

export function BillingPage() {
  const billing = useQuery(BillingService.method.get, {});
  return (
    <Page title="Billing" about="The plan of this account, and its payments.">
      <Loaded query={billing} lines={8}>
        {(data) => (
          <>
            {!data.livemode && (
              <p className="rounded-xl border border-line bg-warn-wash px-4 py-2.5 text-sm text-warn">
                Payments here are a sandbox: no money moves.
              </p>
            )}
            <CurrentPlan billing={data} />
            <Plans billing={data} />
          </>
        )}
      </Loaded>
      <CryptoOrders />
    </Page>
  );
}

function CurrentPlan({ billing: { tier, subscription } }: { readonly billing: Billing }) {
  const isManager = useIsManager();
  const portal = usePortal();
  const isCard = subscription?.paymentMethod === PaymentMethod.CARD;
  // A subscription that has ended may have another tier, too.
  const isGranted = subscription?.status === SubscriptionStatus.ACTIVE && subscription.tier !== tier;
  const price = subscription && priceText(subscription);
  return (
    <Card
      title={`Current plan: ${tierName(tier)}`}
      about={
        subscription
          ? isGranted && "Granted by the operator. The paid plan is lower, and applies when the grant ends."
          : "Nothing is paid by this account."
      }
      actions={
        isManager &&
        isCard && (
          <Button isPending={portal.isPending} onClick={portal.open}>
            <ExternalLink size={13} aria-hidden="true" />
            Receipts and payment
          </Button>
        )
      }
    >
      <ProblemNotice problem={portal.problem} />
      {subscription ? (
        <Properties>
          <Property name="Status">
            <StateBadge states={states} state={subscription.status} />
          </Property>
          {subscription.tier !== tier && <Property name="Paid plan">{tierName(subscription.tier)}</Property>}
          <Property name={price === undefined ? "Granted by" : "Paid by"}>
            {methods[subscription.paymentMethod]}
          </Property>
          {price !== undefined && <Property name="Price">{price}</Property>}
          {subscription.periodEndsAt && (
            <Property name={endName(subscription)}>
              <DateOf at={subscription.periodEndsAt} />
            </Property>
          )}
        </Properties>
      ) : (
        <p className="text-sm text-soft">Choose a plan below to raise the limits.</p>
      )}
    </Card>
  );
}

function Plans({ billing }: { readonly billing: Billing }) {
  const [interval, setInterval] = useState<"month" | "year">("month");
  const [cryptoTier, setCryptoTier] = useState<Tier>();
  const isManager = useIsManager();
  const { tier: current, subscription } = billing;
  // An operator can grant a tier above the paid one.
  const isPaid = subscription && subscription.tier !== current && subscription.status === SubscriptionStatus.ACTIVE;
  const paidTier = isPaid ? subscription.tier : undefined;
  // The service refuses a second subscription by card.
  const hasCard =
    subscription?.paymentMethod === PaymentMethod.CARD && subscription.status !== SubscriptionStatus.ENDED;
  const portal = usePortal();
  const checkout = useChange(BillingService.method.createCheckoutSession, {
    onDone: ({ url }) => location.assign(url),
  });
  const choose = (tier: Tier): void =>
    checkout.run({
      tier,
      interval: interval === "year" ? BillingInterval.YEAR : BillingInterval.MONTH,
      ...returnUrls(),
    });
  return (
    <Card
      title="Plans"
      about={
        subscription?.paymentMethod === PaymentMethod.INVOICE
          ? "The granted plan stays as it is, even if you pay for a lower one."
          : hasCard
            ? "A change is made on the page of the payment processor, which charges or credits the difference."
            : "Prices include taxes."
      }
      actions={
        <Segments
          label="Interval"
          value={interval}
          choices={[
            ["month", "Monthly"],
            ["year", "Yearly"],
          ]}
          onChoose={setInterval}
        />
      }
    >
      <ProblemNotice problem={checkout.problem ?? portal.problem} />
      <ul className="grid gap-4 lg:grid-cols-3">
        {plans.map(({ tier, about, points }) => (
          <li key={tier} className="flex flex-col rounded-xl border border-line p-4">
            <h3 className="flex items-center gap-2 font-semibold">
              {tierName(tier)}
              {billing.tier === tier && <Badge tone="accent">Current</Badge>}
              {tier === paidTier && <Badge tone="good">Paid</Badge>}
            </h3>
            <p className="text-sm text-soft">{about}</p>
            <p className="mt-3">
              <span className="text-xl font-semibold tabular-nums">{tierPrice(tier, interval)}</span>{" "}
              <span className="text-sm text-soft">a {interval}</span>
            </p>
            <ul className="my-4 flex flex-1 flex-col gap-1.5 text-sm">
              {points.map((point) => (
                <li key={point}>{point}</li>
              ))}
            </ul>
            {isManager && billing.tier !== tier && tier !== paidTier && (
              <div className="flex gap-2">
                <Button
                  kind="primary"
                  className="flex-1"
                  isPending={checkout.isPending || portal.isPending}
                  onClick={() => (hasCard ? portal.open() : choose(tier))}
                >
                  {hasCard ? "Change plan" : "Pay by card"}
                </Button>
                <Button onClick={() => setCryptoTier(tier)}>
                  <Bitcoin size={14} aria-hidden="true" />
                  Crypto
                </Button>
              </div>
            )}
          </li>
        ))}
      </ul>
      {cryptoTier !== undefined && <CryptoCheckout tier={cryptoTier} onClose={() => setCryptoTier(undefined)} />}
    </Card>
  );
}
