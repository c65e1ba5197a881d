import { listMemberships } from "../../src/accounts/memberships.ts";
import { canonicalEmail, findUser, findUserByEmail, type UserRow } from "../../src/accounts/users.ts";
import { orderRemoval } from "../../src/auth/mfa/store.ts";
import { systemClock } from "../../src/platform/clock.ts";
import type { Queryable } from "../../src/platform/postgres/database.ts";
import { StartRefused } from "../../src/platform/start-refused.ts";
import type { AdminCommand } from "./command.ts";
import { asOperator } from "./operator.ts";

async function userOf(db: Queryable, user: string | undefined): Promise<UserRow> {
  if (!user) throw new StartRefused("--user is required and accepts the e-mail address or the id of a user");
  const byEmail = () => findUserByEmail(db, canonicalEmail(user), systemClock.now());
  const found = user.includes("@") ? await byEmail() : await findUser(db, user);
  if (!found) throw new StartRefused(`there is no user ${user}`);
  return found;
}

export const removeMfa: AdminCommand = {
  help: `remove-mfa --user <e-mail address or id>

  removes the lost second factor of a user 24 hours after an e-mail that announces it; a step-up by
  the factor or a recovery code cancels the removal`,
  options: ["user"],
  run({ user: given }, env) {
    return asOperator(env, ({ db, audit }) =>
      db.transaction(async (tx) => {
        const { id, email } = await userOf(tx, given);
        if (!(await orderRemoval(tx, id))) throw new StartRefused(`${email} (${id}) has no second factor`);
        for (const { accountId } of await listMemberships(tx, id))
          audit.record(tx, { accountId, actor: { kind: "operator" }, action: "totp.order_delete", subject: id });
        return `${email} (${id}) is notified by e-mail, and loses the second factor in 24 hours.`;
      }),
    );
  },
};
