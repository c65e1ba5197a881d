import { type Mail, mailTo } from "../mail/mail.ts";
import type { MemberRow } from "../teams/member-store.ts";

/** Contents of e-mails about the deletion or restoration of an account. */
export interface DeletionNotice {
  readonly accountName: string;
  /** E-mail address of the user who deleted or restored the account. */
  readonly by: string;
}

const userOf = ({ user_id, email, name }: MemberRow) => ({ id: user_id, email, name });

/** Creates the e-mail about a deletion. `url` is the link to restore the account, for owners. */
export function deletionMail(
  member: MemberRow,
  { accountName, by }: DeletionNotice,
  deletesAt: Date,
  url?: string,
): Mail {
  const day = deletesAt.toISOString().slice(0, 16).replace("T", " ");
  const done = `${by} deleted the account ${accountName}. Its keys and logins no longer work, and its sessions have ended.`;
  const restoration =
    url === undefined
      ? `An owner can restore it until ${day} UTC.`
      : `You can restore it with the link until ${day} UTC. After that, its data is deleted permanently.`;
  return mailTo(userOf(member), {
    kind: "security",
    subject: "Your account was deleted",
    lines: [done, restoration],
    ...(url !== undefined && { button: { label: "Restore the account", url } }),
  });
}

export function restorationMail(member: MemberRow, { accountName, by }: DeletionNotice): Mail {
  const lines = [`${by} restored the account ${accountName}. Its keys and logins work again.`];
  return mailTo(userOf(member), { kind: "security", subject: "Your account was restored", lines });
}
