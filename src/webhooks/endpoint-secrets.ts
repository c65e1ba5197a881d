import { randomBytes } from "node:crypto";
import { isKeyLost, type Sealer } from "../platform/secrets/secrets-sealer.ts";
import { endpointSecretPrefix } from "./webhook-signature.ts";

/** Random bytes of a secret, which are 32 characters of base64. */
const secretBytes = 24;

const prefixLength = 12;

/** Milliseconds for which the previous secret also signs after a rotation. */
export const graceMs = 24 * 3_600_000;

/** Creates a secret: `whsec_` and standard base64, as Standard Webhooks libraries expect. */
export function newEndpointSecret(): string {
  return `${endpointSecretPrefix}${randomBytes(secretBytes).toString("base64")}`;
}

/** Returns the first characters of a secret, by which people recognise the secret. */
export function secretPrefixOf(secret: string): string {
  return secret.slice(0, prefixLength);
}

const contextOf = (accountId: string) => ({ accountId, purpose: "webhook" });

export function sealSecret(sealer: Sealer, accountId: string, secret: string): Buffer {
  return sealer.seal(Buffer.from(secret), contextOf(accountId));
}

export interface SealedSecrets {
  readonly account_id: string;
  readonly secret: Buffer;
  readonly prev_secret: Buffer | null;
  readonly grace_expires_at: Date | null;
}

/**
 * Decrypts the secrets that sign at `now`, newest first. Omits the previous secret if its encryption key is lost.
 * Returns an empty list if the key of the newest secret is lost, so deliveries fail until the secret is rotated.
 */
export function openSecrets(sealer: Sealer, row: SealedSecrets, now: number): string[] {
  const isGrace = row.grace_expires_at !== null && row.grace_expires_at.getTime() > now;
  const newest = openSecret(sealer, row.account_id, row.secret);
  if (newest === undefined) return [];
  const previous = row.prev_secret && isGrace ? openSecret(sealer, row.account_id, row.prev_secret) : undefined;
  return previous === undefined ? [newest] : [newest, previous];
}

/** Returns undefined if the key that encrypted the secret is lost. */
function openSecret(sealer: Sealer, accountId: string, sealed: Buffer): string | undefined {
  try {
    return sealer.open(sealed, contextOf(accountId)).toString();
  } catch (error) {
    if (isKeyLost(error)) return undefined;
    throw error;
  }
}
