import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { create } from "@bufbuild/protobuf";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type CryptoReceipt, CryptoReceiptSchema } from "../gen/pilothouse/v1/crypto_order_pb.ts";
import { counted } from "../platform/counted.ts";
import { moneyText, tierText } from "./billing-mails.ts";
import type { OrderRow } from "./order-store.ts";

/** Returns the receipt of an order, from which its text and its PDF are made. Returns undefined for an unpaid order. */
export function receiptOf(order: OrderRow): CryptoReceipt | undefined {
  const { receipt_number: number, paid_at: paidAt, months, tier } = order;
  if (number === null || !paidAt) return undefined;
  return create(CryptoReceiptSchema, {
    number,
    orderId: order.id,
    seller: "Pilothouse",
    buyer: order.buyer ?? "",
    invoiceLines: order.invoice_lines,
    description: `${tierText(tier)}, ${counted(months, "month")}`,
    amountCents: order.amount_cents,
    currency: order.currency,
    cryptoCurrency: order.crypto_currency,
    cryptoAmountPaid: order.crypto_amount_paid,
    exchangeRate: order.exchange_rate,
    transactionIds: order.transaction_ids,
    paidAt: timestampFromDate(paidAt),
    livemode: order.livemode,
    revision: order.receipt_revision,
    ...(order.refunded_at && { refundedCents: order.refunded_cents }),
  });
}

const paidOn = ({ paidAt }: CryptoReceipt): Date => (paidAt ? timestampDate(paidAt) : new Date(0));

/** Sections of a receipt: name and lines. */
function partsOf(receipt: CryptoReceipt): readonly (readonly [string, readonly string[]])[] {
  const { currency, amountCents, refundedCents, livemode } = receipt;
  const coin = receipt.cryptoCurrency.toUpperCase();
  return [
    ["Seller", [receipt.seller]],
    ["Buyer", [receipt.buyer, ...receipt.invoiceLines]],
    ["Order", [receipt.orderId]],
    ["For", [receipt.description]],
    ["Amount", [`${moneyText(amountCents, currency)}, tax included`]],
    [
      "Paid",
      [`${receipt.cryptoAmountPaid} ${coin} on ${paidOn(receipt).toISOString().slice(0, 19).replace("T", " ")} UTC`],
    ],
    ["Rate", [`${receipt.exchangeRate} ${currency.toUpperCase()} for 1 ${coin}`]],
    ["Transactions", receipt.transactionIds],
    ...(refundedCents === undefined ? [] : [["Refunded", [moneyText(refundedCents, currency)]] as const]),
    ...(livemode ? [] : [["Note", ["Created by a sandbox: no money moved."]] as const]),
  ];
}

const headingOf = ({ number, revision }: CryptoReceipt): string =>
  `Receipt ${number}${revision > 1 ? `, revision ${revision}` : ""}`;

export function receiptText(receipt: CryptoReceipt): string {
  const heading = headingOf(receipt);
  const lines = partsOf(receipt).flatMap(([name, values]) =>
    values.map((value, at) => `${(at === 0 ? name : "").padEnd(14)}${value}`),
  );
  return `${heading}\n${"=".repeat(heading.length)}\n\n${lines.join("\n")}\n`;
}

/** Fonts: `plain` for Latin, Greek and Cyrillic, `chinese` for Chinese. Other characters appear as boxes in the PDF. */
const fontFiles = {
  plain: "dejavu-fonts-ttf/ttf/DejaVuSans.ttf",
  chinese: "@expo-google-fonts/noto-sans-sc/400Regular/NotoSansSC_400Regular.ttf",
};

let fonts: Record<keyof typeof fontFiles, Buffer> | undefined;

/** Reads the fonts, 11 MB in total. Later calls return the same buffers. */
async function readFonts(): Promise<NonNullable<typeof fonts>> {
  if (fonts) return fonts;
  const read = (name: string) => readFile(fileURLToPath(import.meta.resolve(name)));
  const [plain, chinese] = await Promise.all([read(fontFiles.plain), read(fontFiles.chinese)]);
  fonts = { plain, chinese };
  return fonts;
}

/** Matches a run of text in one font. */
const fontRuns =
  /[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\u{20000}-\u{3ffff}]+|[^\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\u{20000}-\u{3ffff}]+/gu;
const isChinese = (run: string): boolean => /^[\u2e80-\u{3ffff}]/u.test(run);

/**
 * Points. `name`: width of the column with the section names; `gap`: below each section; `text`, `heading`: font sizes.
 * Lines have the height of the taller font, and `ascent` is the baseline of DejaVu Sans.
 */
const layout = { margin: 56, name: 110, text: 10, heading: 20, gap: 8, ascent: 9.28 };

/** Creates a receipt as a PDF. The same receipt always has the same bytes: the only timestamp is the payment time. */
export async function receiptPdf(receipt: CryptoReceipt): Promise<Buffer> {
  // Loading pdfkit takes about 100 ms, which must not delay startup.
  const { default: PdfDocument } = await import("pdfkit");
  const heading = headingOf(receipt);
  const info = { Title: heading, Author: receipt.seller, CreationDate: paidOn(receipt) };
  const document = new PdfDocument({ size: "A4", margin: layout.margin, info, lang: "en" });
  const parts: Buffer[] = [];
  const ended = new Promise<void>((resolve, reject) => document.once("end", resolve).once("error", reject));
  document.on("data", (part: Buffer) => parts.push(part));
  const files = await readFonts();
  document.registerFont("plain", files.plain).registerFont("chinese", files.chinese).font("plain");
  document.fontSize(layout.heading).text(heading).moveDown().fontSize(layout.text);
  const left = layout.margin + layout.name;
  const width = document.page.width - left - layout.margin;
  const heightOf = (font: keyof typeof fontFiles): number => document.font(font).currentLineHeight();
  const height = Math.max(heightOf("chinese"), heightOf("plain"));
  const line = (font: keyof typeof fontFiles) => ({ baseline: -layout.ascent, lineGap: height - heightOf(font) });
  const lines = { chinese: line("chinese"), plain: line("plain") };
  document.font("plain");
  for (const [name, values] of partsOf(receipt)) {
    const { y } = document;
    document.fillColor("#5a6577").text(name, layout.margin, y, { width: layout.name, ...lines.plain });
    document.fillColor("#1c2330").text("", left, y, { width, ...lines.plain });
    for (const value of values) {
      const parts = value.match(fontRuns) ?? [" "];
      for (const [at, part] of parts.entries()) {
        const font = isChinese(part) ? "chinese" : "plain";
        document.font(font).text(part, { width, continued: at < parts.length - 1, ...lines[font] });
      }
    }
    document.font("plain");
    document.y += layout.gap;
  }
  document.end();
  await ended;
  return Buffer.concat(parts);
}
