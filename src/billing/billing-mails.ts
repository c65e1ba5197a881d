import { listManagers } from "../accounts/memberships.ts";
import { findAccount } from "../accounts/store.ts";
import { mailTo } from "../mail/mail.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { Config } from "../platform/config.ts";
import type { Tx } from "../platform/postgres/database.ts";

/** An e-mail about billing. In e-mails to managers, a line that names the account precedes `lines`. */
export interface BillingMail {
  readonly subject: string;
  readonly lines: readonly string[];
}

/** Formats an amount: `49.00 USD`. */
export const moneyText = (cents: number, currency: string): string =>
  `${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, "0")} ${currency.toUpperCase()}`;

const names: Readonly<Record<string, string>> = {
  personal: "Personal",
  api_builder: "API Builder",
  api_scale: "API Scale",
};

/** Returns the display name of a paid tier, or the name of another tier unchanged. */
export const tierText = (tier: string): string => names[tier] ?? tier;

/** Formats a day: `2026-11-23`. */
export const dayText = (time: Date): string => time.toISOString().slice(0, 10);

export interface BillingMailParts {
  readonly config: Pick<Config, "smtpUrl" | "embedded" | "operatorEmail">;
  readonly mailer: Mailer;
}

const canMail = ({ smtpUrl, embedded }: BillingMailParts["config"]): boolean => smtpUrl !== undefined || embedded;

/** E-mails the owners and admins of an account, if the deployment can send e-mail. */
export async function mailManagers(
  { config, mailer }: BillingMailParts,
  tx: Tx,
  accountId: string,
  { subject, lines }: BillingMail,
): Promise<void> {
  if (!canMail(config)) return;
  const { name } = await findAccount(tx, accountId);
  const about = [`This e-mail is about the account ${name}.`, ...lines];
  for (const manager of await listManagers(tx, accountId))
    await mailer.send(tx, mailTo(manager, { kind: "account", subject, lines: about }));
}

/** E-mails the operator, if the deployment can send e-mail and has an operator's address. */
export async function mailOperator({ config, mailer }: BillingMailParts, tx: Tx, mail: BillingMail): Promise<void> {
  if (!canMail(config) || config.operatorEmail === undefined) return;
  await mailer.send(tx, { to: config.operatorEmail, kind: "account", ...mail });
}
