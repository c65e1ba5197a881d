import { type UserRow, updatePassword } from "../accounts/users.ts";
import { keyPrefixOf } from "../identity/api-keys/key-message.ts";
import { lockKeysCreatedBy } from "../identity/api-keys/store.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { Clock } from "../platform/clock.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { createAuthMails } from "./auth-mails.ts";
import type { Logins } from "./logins/logins.ts";
import { dropMailTokens, makeMailToken } from "./mail-tokens.ts";

/** Maximum number of keys that the e-mail lists. An e-mail has at most 40 lines. */
const maxNamed = 25;

interface NewPasswordParts {
  readonly clock: Clock;
  readonly logins: Logins;
  readonly mailer: Mailer;
}

/**
 * Stores a new password, ends all logins except `except`, and deletes the user's unused e-mail links except recovery
 * links. The confirmation e-mail lists the API keys that the user created, which stay valid, with a link that revokes
 * these keys.
 */
export async function changePasswordHash(
  { clock, logins, mailer }: NewPasswordParts,
  tx: Tx,
  user: UserRow,
  { passwordHash, except }: { readonly passwordHash: string; readonly except?: string },
): Promise<void> {
  const { id: userId, email } = user;
  await updatePassword(tx, userId, passwordHash);
  await dropMailTokens(tx, userId);
  await logins.end(tx, { userId, ...(except !== undefined && { except }) });
  const keys = await lockKeysCreatedBy(tx, { userId }, new Date(clock.now()));
  const named = keys.slice(0, maxNamed).map(({ id, name }) => `${name} (${keyPrefixOf(id)}...)`);
  if (keys.length > maxNamed) named.push(`and ${keys.length - maxNamed} more`);
  const token = keys.length > 0 ? await makeMailToken(tx, "keys", { userId, email }, clock.now()) : "";
  await mailer.send(tx, createAuthMails(mailer).passwordChanged(user, named, token));
}
