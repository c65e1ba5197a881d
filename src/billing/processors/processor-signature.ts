import { createHmac, timingSafeEqual } from "node:crypto";

/** Computes the signature of BTCPay Server (`BTCPay-Sig`). */
export const btcPaySignature = (secret: string, body: string | Buffer): string =>
  `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;

/** Verifies the signature of a BTCPay Server webhook, in constant time. */
export function isBtcPaySigned(secret: string, body: Buffer, signature: unknown): boolean {
  if (typeof signature !== "string") return false;
  const [given, right] = [Buffer.from(signature), Buffer.from(btcPaySignature(secret, body))];
  return given.length === right.length && timingSafeEqual(given, right);
}
