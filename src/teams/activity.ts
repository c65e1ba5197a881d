import { listManagers } from "../accounts/memberships.ts";
import { findAccount } from "../accounts/store.ts";
import { mailTo } from "../mail/mail.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { Tx } from "../platform/postgres/database.ts";
import type { MemberRow } from "./member-store.ts";

const sentences = {
  joined: { subject: "Someone joined your team", done: "has joined" },
  left: { subject: "A member left your team", done: "has left" },
  removed: { subject: "A member was removed from your team", done: "was removed from" },
} as const;

/**
 * E-mails the owners and admins of an account about a member who joined, left or was removed, except those who opted
 * out and the member. Also e-mails a removed member.
 */
export async function notifyActivity(
  tx: Tx,
  mailer: Mailer,
  member: MemberRow,
  what: keyof typeof sentences,
): Promise<void> {
  const { subject, done } = sentences[what];
  const { name: accountName } = await findAccount(tx, member.account_id);
  if (what === "removed") {
    const lines = [`You are no longer a member of the account ${accountName}. Its owners can invite you again.`];
    const removed = { id: member.user_id, email: member.email, name: member.name };
    await mailer.send(tx, mailTo(removed, { kind: "account", subject: "You were removed from a team", lines }));
  }
  const who = `${member.name} (${member.email})`;
  for (const manager of await listManagers(tx, member.account_id)) {
    if (manager.id === member.user_id) continue;
    const lines = [`${who} ${done} the account ${accountName}.`];
    await mailer.send(tx, mailTo(manager, { kind: "team_activity", subject, lines }));
  }
}
