import { type Mail, mailTo } from "../mail/mail.ts";
import type { MemberRow } from "../teams/member-store.ts";

/** What is told of an account that is deleted or restored. */
export interface DeletionNews {
  readonly accountName: string;
  /** The e-mail address of whoever does it. */
  readonly by: string;
}

const userOf = ({ user_id, email, name }: MemberRow) => ({ id: user_id, email, name });

/** Tells a member that its account is going to be deleted; owners get a link that restores it. */
export function deletionMail(
  member: MemberRow,
  { accountName, by }: DeletionNews,
  deletesAt: Date,
  url?: string,
): Mail {
  const day = deletesAt.toISOString().slice(0, 16).replace("T", " ");
  const done = `${by} has deleted the account ${accountName}. Its keys and logins do not work any more, and its sessions have ended.`;
  const way =
    url === undefined
      ? `Until ${day} UTC an owner can restore it.`
      : `Until ${day} UTC you can restore it by the link. Then everything in it is gone.`;
  return mailTo(userOf(member), {
    ...{ kind: "security", subject: "Your account is deleted", lines: [done, way] },
    ...(url !== undefined && { button: { label: "Restore the account", url } }),
  });
}

/** Tells a member that its account goes on. */
export function restorationMail(member: MemberRow, { accountName, by }: DeletionNews): Mail {
  const lines = [`${by} has restored the account ${accountName}: its keys and logins work again.`];
  return mailTo(userOf(member), { kind: "security", subject: "Your account is restored", lines });
}
