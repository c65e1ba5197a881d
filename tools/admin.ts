// npm run admin -- <command>: what an operator does that has no endpoint.
import { parseArgs } from "node:util";
import { StartRefused } from "../src/platform/start-refused.ts";
import { type AdminCommand, parserOptions } from "./admin/command.ts";
import { copyEmbedded } from "./admin/copy-database.ts";
import { createKey } from "./admin/create-key.ts";
import { disableAccount, enableAccount } from "./admin/disable-account.ts";
import { closeIncident, maintenance, openIncident, updateIncident } from "./admin/incident.ts";
import { listAll } from "./admin/list-accounts.ts";
import { extend, listMoney, refund, returnMoney } from "./admin/money.ts";
import { endOverride, setOverride } from "./admin/override.ts";
import { publishTerms } from "./admin/publish-terms.ts";
import { removeMfa } from "./admin/remove-mfa.ts";
import { setTier } from "./admin/set-tier.ts";
import { complain, print } from "./run-command.ts";

const commands: Readonly<Record<string, AdminCommand>> = {
  "create-key": createKey,
  "list-accounts": listAll,
  "set-tier": setTier,
  override: setOverride,
  "end-override": endOverride,
  "disable-account": disableAccount,
  "enable-account": enableAccount,
  "remove-mfa": removeMfa,
  "publish-terms": publishTerms,
  "incident open": openIncident,
  "incident update": updateIncident,
  "incident close": closeIncident,
  maintenance,
  orders: listMoney,
  refund,
  return: returnMoney,
  extend,
  "copy-database": copyEmbedded,
};

const usage = (text: string): string => `npm run admin -- ${text}`;

const help = `What an operator does that has no endpoint. The commands work on the database of DATABASE_URL, else on that of
the service that runs on DATA_DIR. Each change is written into the audit log of its account.

${Object.values(commands)
  .map(({ help }) => usage(help))
  .join("\n\n")}`;

/** Does what the command line says, and gives what is to be printed. */
async function run([first = "--help", ...others]: readonly string[]): Promise<string> {
  // The names of some have two words.
  const [second = ""] = others;
  const hasTwo = Object.hasOwn(commands, `${first} ${second}`);
  const [name, args] = hasTwo ? [`${first} ${second}`, others.slice(1)] : [first, others];
  if (name === "--help") return help;
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (!command)
    throw new StartRefused(`there is no command ${name}; there are ${Object.keys(commands).join(", ")}; see --help`);
  const { values } = parseArgs({ args, options: parserOptions(command) });
  if (values.help) return usage(command.help);
  return command.run(Object.fromEntries(Object.entries(values).map(([option, value]) => [option, String(value)])));
}

try {
  print(await run(process.argv.slice(2)));
} catch (error) {
  complain(error);
}
