import { randomBytes } from "node:crypto";
import type { Sealer } from "../platform/secrets/secrets-sealer.ts";
import { secretMark } from "./signature.ts";

/** Bytes of a secret behind its prefix: 32 characters of base64. */
const secretBytes = 24;

const prefixLength = 12;

/** Milliseconds for which the secret before a rotation signs as well. */
export const graceMs = 24 * 3_600_000;

/** Makes a secret: `whsec_` and standard base64, as the libraries of Standard Webhooks read it. */
export function newSecret(): string {
  return `${secretMark}${randomBytes(secretBytes).toString("base64")}`;
}

/** How a secret begins, to tell secrets apart. */
export function prefixOf(secret: string): string {
  return secret.slice(0, prefixLength);
}

const contextOf = (accountId: string) => ({ accountId, purpose: "webhook" });

/** Seals a secret for its row. */
export function sealSecret(sealer: Sealer, accountId: string, secret: string): Buffer {
  return sealer.seal(Buffer.from(secret), contextOf(accountId));
}

/** The secrets of an endpoint as its row has them. */
export interface SealedSecrets {
  readonly account_id: string;
  readonly secret: Buffer;
  readonly prev_secret: Buffer | null;
  readonly grace_expires_at: Date | null;
}

/** Opens the secrets that sign at a time, the newest first. */
export function openSecrets(sealer: Sealer, row: SealedSecrets, now: number): string[] {
  const isGrace = row.grace_expires_at !== null && row.grace_expires_at.getTime() > now;
  const sealed = row.prev_secret && isGrace ? [row.secret, row.prev_secret] : [row.secret];
  return sealed.map((secret) => sealer.open(secret, contextOf(row.account_id)).toString());
}
