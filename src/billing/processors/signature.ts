import { createHmac, timingSafeEqual } from "node:crypto";

/** Writes the signature of BTCPay Server (`BTCPay-Sig`). */
export const btcPaySignature = (secret: string, body: string | Buffer): string =>
  `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;

/** Says whether a notice of BTCPay Server is signed, in a time that tells nothing of the signature. */
export function isBtcPaySigned(secret: string, body: Buffer, signature: unknown): boolean {
  if (typeof signature !== "string") return false;
  const [given, right] = [Buffer.from(signature), Buffer.from(btcPaySignature(secret, body))];
  return given.length === right.length && timingSafeEqual(given, right);
}
