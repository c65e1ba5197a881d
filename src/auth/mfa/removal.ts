import { listMemberships } from "../../accounts/memberships.ts";
import { findUser, type UserRow } from "../../accounts/users.ts";
import type { AuditLog } from "../../kernel/call.ts";
import type { Mailer } from "../../mail/mailer.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import type { DueTask } from "../../platform/postgres/due-tasks.ts";
import { factorMail } from "./mfa-mails.ts";
import { announceRemovals, removalsAreDue, removeFactor, takeDueRemovals } from "./store.ts";

/** Milliseconds between e-mail and removal. In this time, any step-up of the user cancels the removal. */
const noticeMs = 86_400_000;

export interface RemovalParts extends Pick<PlatformParts, "db" | "bus" | "clock"> {
  readonly mailer: Mailer;
  readonly audit: AuditLog;
}

/** Removes the second factor of a user, and e-mails the user. Returns false if the user has no second factor. */
export async function removeWithMail(
  { bus, mailer }: Pick<RemovalParts, "bus" | "mailer">,
  tx: Tx,
  user: UserRow,
): Promise<boolean> {
  if (!(await removeFactor(tx, user.id))) return false;
  tx.afterCommit(() => bus.publish("bearer-changed", user.id));
  await mailer.send(tx, factorMail("removed", user));
  return true;
}

/** Creates the task for removals that the operator orders: e-mails the users, and removes their factors a day later. */
export function removalTask(parts: RemovalParts): DueTask {
  const { db, clock, mailer, audit } = parts;

  async function notify(tx: Tx, userId: string): Promise<void> {
    const user = await findUser(tx, userId);
    if (user) await mailer.send(tx, factorMail("removing", user));
  }

  async function remove(tx: Tx, userId: string): Promise<void> {
    const user = await findUser(tx, userId);
    if (!user || !(await removeWithMail(parts, tx, user))) return;
    for (const { accountId } of await listMemberships(tx, userId))
      audit.record(tx, { accountId, actor: { kind: "service" }, action: "totp.delete", subject: userId });
  }

  return {
    isDue: () => removalsAreDue(new Date(clock.now())),
    async run() {
      const now = clock.now();
      await db.transaction(async (tx) => {
        for (const userId of await announceRemovals(tx, new Date(now + noticeMs))) await notify(tx, userId);
        for (const userId of await takeDueRemovals(tx, new Date(now))) await remove(tx, userId);
      });
    },
    failureMessage: "failed to remove lost second factors",
  };
}
