import { createArrangements } from "../../src/limits/arrangements.ts";
import { type TierName, tiers } from "../../src/limits/tiers.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { StartRefused } from "../../src/platform/start-refused.ts";
import type { AdminCommand } from "./command.ts";
import { accountOf, asOperator } from "./operator.ts";

/** Parses the name of a tier. */
export function readTier(tier: string | undefined): TierName {
  const found = tiers.names.find((name) => name === tier);
  if (!found) throw new StartRefused(`--tier accepts ${tiers.names.join(", ")}, not ${tier ?? "nothing"}`);
  return found;
}

export const setTier: AdminCommand = {
  help: `set-tier --account <name or id> --tier <tier>

  changes the tier of an account, in force within 5 s; running sessions keep the limits of their creation

  --tier <tier>           ${tiers.names.join(", ")}`,
  options: ["account", "tier"],
  run({ account, tier }, env) {
    const wanted = readTier(tier);
    return asOperator(env, ({ db, bus, audit }) =>
      db.transaction(async (tx) => {
        const { id, name } = await accountOf(tx, account);
        const before = await createArrangements({ clock: systemClock, bus }).setTier(tx, id, wanted);
        const record = { accountId: id, actor: { kind: "operator" }, action: "account.set_tier", subject: id } as const;
        audit.record(tx, { ...record, data: { before, tier: wanted } });
        return `${name} (${id}) has the tier ${wanted}; it had ${before} before.`;
      }),
    );
  },
};
