import { BillingService } from "../../../src/gen/pilothouse/v1/billing_pb.ts";
import {
  type CryptoOrder,
  CryptoOrderService,
  CryptoOrderStatus,
} from "../../../src/gen/pilothouse/v1/crypto_order_pb.ts";
import { useList } from "../../api/lists.ts";
import { problemOf, toSentence } from "../../api/problem.ts";
import { useChange } from "../../api/queries.ts";
import { requestRaw, saveFile } from "../../api/raw-files.ts";
import { StateBadge, type States } from "../../ui/badge.tsx";
import { Button, buttonClass } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { List } from "../../ui/list.tsx";
import { DateOf } from "../../ui/time.tsx";
import { toast } from "../../ui/toast.tsx";
import { moneyText, tierName } from "./tier-words.ts";

const states: States<CryptoOrderStatus> = {
  [CryptoOrderStatus.UNSPECIFIED]: ["Unknown", "neutral"],
  [CryptoOrderStatus.QUOTED]: ["Quoted", "neutral"],
  [CryptoOrderStatus.AWAITING_PAYMENT]: ["Awaiting payment", "warn"],
  [CryptoOrderStatus.CONFIRMING]: ["Confirming", "accent"],
  [CryptoOrderStatus.PAID]: ["Paid", "good"],
  [CryptoOrderStatus.FAILED]: ["Failed", "bad"],
  [CryptoOrderStatus.CANCELLED]: ["Cancelled", "neutral"],
};

/** Crypto orders with their receipts. Nothing is shown without orders. */
export function CryptoOrders() {
  const list = useList(CryptoOrderService.method.list, {});
  if (!list.data || list.data.length === 0) return null;
  return (
    <Card title="Crypto orders" isFlush>
      <List<CryptoOrder>
        list={list}
        label="Crypto orders"
        keyOf={({ id }) => id}
        columns={[
          {
            title: "Order",
            cell: ({ tier, months }) => `${tierName(tier)}, ${months} ${months === 1 ? "month" : "months"}`,
          },
          {
            title: "Status",
            cell: ({ status }) => <StateBadge states={states} state={status} />,
          },
          {
            title: "Amount",
            from: "sm",
            isRight: true,
            cell: ({ amountCents, currency }) => moneyText(amountCents, currency),
          },
          { title: "Created", from: "lg", cell: ({ createdAt }) => <DateOf at={createdAt} /> },
          { title: "", isRight: true, cell: (order) => <OrderActions order={order} /> },
        ]}
        empty={null}
      />
    </Card>
  );
}

function OrderActions({ order: { id, status, checkoutUrl } }: { readonly order: CryptoOrder }) {
  const cancel = useChange(CryptoOrderService.method.cancel, { changes: [CryptoOrderService, BillingService] });
  const save = (): void => {
    requestRaw(`/v1/billing/crypto-orders/${id}/receipt.pdf`)
      .then(async (answer) => saveFile(`receipt-${id}.pdf`, await answer.blob()))
      .catch((error) => toast(toSentence(problemOf(error).detail), { isFault: true }));
  };
  if (status === CryptoOrderStatus.PAID) {
    return (
      <Button size="small" onClick={save}>
        Receipt
      </Button>
    );
  }
  const isOpen = status === CryptoOrderStatus.QUOTED || status === CryptoOrderStatus.AWAITING_PAYMENT;
  if (!isOpen) return null;
  return (
    <span className="inline-flex gap-1.5">
      {checkoutUrl !== undefined && (
        <a href={checkoutUrl} target="_blank" rel="noreferrer" className={buttonClass("plain", "small")}>
          Pay
        </a>
      )}
      <Button size="small" isPending={cancel.isPending} onClick={() => cancel.run({ id })}>
        Cancel
      </Button>
    </span>
  );
}
