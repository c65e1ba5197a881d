import files from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { inflateSync } from "node:zlib";
import { create } from "@bufbuild/protobuf";
import { expect, onTestFinished, test, vi } from "vitest";
import { receiptPdf } from "../../src/billing/receipts.ts";
import { CryptoReceiptSchema } from "../../src/gen/pilothouse/v1/crypto_order_pb.ts";

/** Returns the font name and baseline height of each text on a PDF page. */
function placesIn(pdf: Buffer): { font: string; y: number }[] {
  const text = pdf.toString("latin1");
  const start = text.indexOf("stream\n") + "stream\n".length;
  const content = inflateSync(Buffer.from(text.slice(start, text.indexOf("\nendstream", start)), "latin1")).toString();
  const blocks = content.matchAll(/1 0 0 1 [\d.]+ ([\d.]+) Tm\n\/(F\d+) 10 Tf/g);
  return [...blocks].map(([, y, font = ""]) => ({ font, y: Number(y) }));
}

test("reads the fonts again after a failure", async () => {
  onTestFinished(() => {
    vi.restoreAllMocks();
    syncBuiltinESMExports();
  });
  vi.spyOn(files, "readFile").mockRejectedValueOnce(new Error("EMFILE: too many open files"));
  syncBuiltinESMExports();
  const receipt = create(CryptoReceiptSchema, { buyer: "Ada" });
  await expect(receiptPdf(receipt)).rejects.toThrow("EMFILE");
  expect((await receiptPdf(receipt)).subarray(0, 5).toString()).toBe("%PDF-");
});

test("Latin and Chinese text share a baseline, and lines are evenly spaced", async () => {
  const invoiceLines = ["Acme GmbH — 你好", "USt-ID DE1"];
  const places = placesIn(await receiptPdf(create(CryptoReceiptSchema, { buyer: "Ada", invoiceLines })));
  const [chinese, ...others] = places.filter(({ font }) => font !== places[0]?.font);
  expect(others).toEqual([]);
  const plain = places.filter(({ font }) => font === places[0]?.font).map(({ y }) => y);
  expect(plain).toContain(chinese?.y);
  const [above, below] = [plain.findLast((y) => y > (chinese?.y ?? 0)), plain.find((y) => y < (chinese?.y ?? 0))];
  expect((above ?? 0) - (chinese?.y ?? 0)).toBeCloseTo((chinese?.y ?? 0) - (below ?? 0), 1);
});
