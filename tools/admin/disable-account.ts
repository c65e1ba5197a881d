import { createArrangements } from "../../src/limits/arrangements.ts";
import { systemClock } from "../../src/platform/clock.ts";
import type { Environment } from "../../src/platform/environment.ts";
import { StartRefused } from "../../src/platform/start-refused.ts";
import type { AdminCommand, Given } from "./command.ts";
import { accountOf, asOperator } from "./operator.ts";

function change({ account, reason }: Given, env: Environment, isDisabled: boolean): Promise<string> {
  const state = isDisabled ? "disabled" : "enabled";
  return asOperator(env, ({ db, bus, audit }) =>
    db.transaction(async (tx) => {
      const { id, name } = await accountOf(tx, account);
      const isChanged = await createArrangements({ clock: systemClock, bus }).setDisabled(tx, id, isDisabled);
      if (!isChanged) throw new StartRefused(`${name} (${id}) is ${state} already`);
      const action = isDisabled ? "account.disable" : "account.enable";
      const data = reason === undefined ? {} : { reason };
      audit.record(tx, { accountId: id, actor: { kind: "operator" }, action, subject: id, data });
      return `${name} (${id}) is ${state}.`;
    }),
  );
}

export const disableAccount: AdminCommand = {
  help: `disable-account --account <name or id> [options]

  revokes the keys and logins of an account and ends its sessions, within 5 s, until it is enabled

  --reason <text>         shown in the audit log of the account`,
  options: ["account", "reason"],
  run: (given, env) => change(given, env, true),
};

export const enableAccount: AdminCommand = {
  help: `enable-account --account <name or id> [options]

  enables a disabled account again, with its earlier keys and logins

  --reason <text>         shown in the audit log of the account`,
  options: ["account", "reason"],
  run: (given, env) => change(given, env, false),
};
