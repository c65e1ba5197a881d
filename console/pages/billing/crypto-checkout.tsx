import type { Tier } from "../../../src/gen/pilothouse/v1/account_pb.ts";
import { BillingService } from "../../../src/gen/pilothouse/v1/billing_pb.ts";
import { type CryptoOrder, CryptoOrderService } from "../../../src/gen/pilothouse/v1/crypto_order_pb.ts";
import { useChange } from "../../api/queries.ts";
import { Actions, Button, buttonClass } from "../../ui/button.tsx";
import { Properties, Property } from "../../ui/card.tsx";
import { CopyLine } from "../../ui/copy.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { SelectField, textOf } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { ProblemNotice } from "../../ui/state.tsx";
import { Until } from "../../ui/time.tsx";
import { moneyText, tierName } from "./tier-words.ts";

/** A quote for months of a tier, and then its payment address. */
export function CryptoCheckout({ tier, onClose }: { readonly tier: Tier; readonly onClose: () => void }) {
  const quote = useChange(CryptoOrderService.method.quote);
  const checkout = useChange(CryptoOrderService.method.checkout, { changes: [CryptoOrderService, BillingService] });
  const submit = (form: FormData): void =>
    quote.run({ tier, months: Number(form.get("months")), cryptoCurrency: textOf(form, "coin") ?? "btc" });
  return (
    <Dialog
      title={`${tierName(tier)} by crypto`}
      about="Paid months run from the payment. Nothing renews by itself."
      isOpen
      onClose={onClose}
    >
      {checkout.data ? (
        <Payment order={checkout.data} onClose={onClose} />
      ) : quote.data ? (
        <>
          <Quote order={quote.data} />
          <ProblemNotice problem={checkout.problem} />
          <Actions>
            <Button onClick={() => quote.reset()}>Back</Button>
            <Button
              kind="primary"
              isPending={checkout.isPending}
              onClick={() => quote.data && checkout.run({ orderId: quote.data.id, tier })}
            >
              Pay this amount
            </Button>
          </Actions>
        </>
      ) : (
        <Form onSubmit={submit}>
          <div className="grid grid-cols-2 gap-4">
            <SelectField label="Months" name="months" defaultValue="1" problem={quote.problem}>
              {[1, 3, 6, 12].map((months) => (
                <option key={months} value={months}>
                  {months}
                </option>
              ))}
            </SelectField>
            <SelectField label="Coin" name="coin" defaultValue="btc" problem={quote.problem}>
              <option value="btc">BTC</option>
              <option value="ltc">LTC</option>
              <option value="xmr">XMR</option>
            </SelectField>
          </div>
          <ProblemNotice problem={quote.problem} />
          <Actions>
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" kind="primary" isPending={quote.isPending}>
              Show the amount
            </Button>
          </Actions>
        </Form>
      )}
    </Dialog>
  );
}

function Quote({ order }: { readonly order: CryptoOrder }) {
  const { amountCents, currency, cryptoAmount, cryptoCurrency, quoteExpiresAt, months } = order;
  return (
    <Properties>
      <Property name="For">
        {months} {months === 1 ? "month" : "months"}
      </Property>
      <Property name="Price">{moneyText(amountCents, currency)}</Property>
      <Property name="Amount">
        {cryptoAmount} {cryptoCurrency.toUpperCase()}
      </Property>
      <Property name="Holds until">
        <Until at={quoteExpiresAt} />
      </Property>
    </Properties>
  );
}

function Payment({ order, onClose }: { readonly order: CryptoOrder; readonly onClose: () => void }) {
  const { paymentAddress, checkoutUrl, cryptoAmount, cryptoCurrency, expiresAt } = order;
  return (
    <div className="flex flex-col gap-3">
      <p className="text-sm">
        Send exactly {cryptoAmount} {cryptoCurrency.toUpperCase()}, <Until at={expiresAt} /> at the latest.
      </p>
      {paymentAddress !== undefined && <CopyLine text={paymentAddress} label="the payment address" />}
      <Actions>
        <Button onClick={onClose}>Close</Button>
        {checkoutUrl !== undefined && (
          <a href={checkoutUrl} target="_blank" rel="noreferrer" className={buttonClass("primary")}>
            Open the payment page
          </a>
        )}
      </Actions>
    </div>
  );
}
