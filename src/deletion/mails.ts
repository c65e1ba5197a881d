import type { Mail } from "../mail/mail.ts";
import type { MemberRow } from "../teams/member-store.ts";

/** What is told of an account that is deleted or restored. */
export interface DeletionNews {
  readonly accountName: string;
  /** The e-mail address of whoever does it. */
  readonly by: string;
}

/** Tells a member that its account is going to be deleted; owners get a link that restores it. */
export function deletionMail(
  member: MemberRow,
  { accountName, by }: DeletionNews,
  deletesAt: Date,
  url?: string,
): Mail {
  const day = deletesAt.toISOString().slice(0, 16).replace("T", " ");
  const lines = [
    `Hello ${member.name},`,
    `${by} has deleted the account ${accountName}. Its keys and logins are good for nothing from now on, and its sessions have ended.`,
  ];
  const mail = {
    to: member.email,
    userId: member.user_id,
    kind: "security",
    subject: "Your account is deleted",
  } as const;
  if (url === undefined) return { ...mail, lines: [...lines, `Until ${day} UTC an owner can restore it.`] };
  return {
    ...mail,
    lines: [...lines, `Until ${day} UTC you can restore it by the link. Then everything in it is gone.`],
    button: { label: "Restore the account", url },
  };
}

/** Tells a member that its account goes on. */
export function restorationMail({ name, email, user_id }: MemberRow, { accountName, by }: DeletionNews): Mail {
  const lines = [
    `Hello ${name},`,
    `${by} has restored the account ${accountName}: its keys and logins are good again.`,
  ];
  return { to: email, userId: user_id, kind: "security", subject: "Your account is restored", lines };
}
