import { listManagers } from "../accounts/memberships.ts";
import { findAccount } from "../accounts/store.ts";
import { mailTo } from "../mail/mail.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { Tx } from "../platform/postgres/database.ts";
import type { MemberRow } from "./member-store.ts";

const sentences = {
  joined: { subject: "Someone joined your team", done: "has joined" },
  left: { subject: "A member left your team, or was removed", done: "has left or was removed from" },
} as const;

/** Mails the owners and admins of an account about a member who joined or left, unless they opted out. */
export async function notifyActivity(
  tx: Tx,
  mailer: Mailer,
  member: MemberRow,
  what: keyof typeof sentences,
): Promise<void> {
  const { subject, done } = sentences[what];
  const { name: accountName } = await findAccount(tx, member.account_id);
  const who = `${member.name} (${member.email})`;
  for (const manager of await listManagers(tx, member.account_id)) {
    if (manager.id === member.user_id) continue;
    const lines = [`${who} ${done} the account ${accountName}.`];
    await mailer.send(tx, mailTo(manager, { kind: "team_activity", subject, lines }));
  }
}
