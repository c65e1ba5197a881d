import { parseArgs } from "node:util";
import type { Environment } from "../../src/platform/environment.ts";
import { withSecretFiles } from "../../src/platform/secret-files.ts";
import { StartRefused } from "../../src/platform/start-refused.ts";
import { explain } from "../run-command.ts";
import { type AdminCommand, parserOptions } from "./command.ts";
import { copyEmbedded } from "./copy-database.ts";
import { createKey } from "./create-key.ts";
import { disableAccount, enableAccount } from "./disable-account.ts";
import { closeIncident, maintenance, openIncident, updateIncident } from "./incident.ts";
import { listAll } from "./list-accounts.ts";
import { migrateDatabase } from "./migrate.ts";
import { extend, listMoney, refund, returnMoney } from "./money.ts";
import { endOverride, setOverride } from "./override.ts";
import { publishTerms } from "./publish-terms.ts";
import { removeMfa } from "./remove-mfa.ts";
import { secretsKeys } from "./secrets-keys.ts";
import { setTier } from "./set-tier.ts";
import { drainWorker, listAllWorkers } from "./workers.ts";

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
  workers: listAllWorkers,
  drain: drainWorker,
  "secrets-keys": secretsKeys,
  migrate: migrateDatabase,
  "copy-database": copyEmbedded,
};

const usage = (text: string): string => `npm run admin -- ${text}`;

const help = `Operator commands without an endpoint. The commands work on the database of DATABASE_URL, else on that of
the service that runs on DATA_DIR. Each change is written into the audit log of its account.

${Object.values(commands)
  .map(({ help }) => usage(help))
  .join("\n\n")}`;

/** Runs a command line and returns its output. */
async function answer([first = "--help", ...others]: readonly string[], env: Environment): Promise<string> {
  // Some command names have two words.
  const [second = ""] = others;
  const hasTwo = Object.hasOwn(commands, `${first} ${second}`);
  const [name, args] = hasTwo ? [`${first} ${second}`, others.slice(1)] : [first, others];
  if (name === "--help") return help;
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (!command)
    throw new StartRefused(`expected a command (${Object.keys(commands).join(", ")}), got ${name}; see --help`);
  const { argument } = command;
  const { values, positionals } = parseArgs({ args, options: parserOptions(command), allowPositionals: !!argument });
  if (values.help) return usage(command.help);
  const [subject, ...rest] = positionals;
  if (argument && (!subject || rest.length > 0))
    throw new StartRefused(`expected one ${argument}, got ${positionals.length}; see --help`);
  const given = Object.fromEntries(Object.entries(values).map(([option, value]) => [option, String(value)]));
  return command.run(argument ? { ...given, [argument]: subject } : given, withSecretFiles(env));
}

/** Output streams of a command. */
interface Output {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
}

/** Runs a command line and returns its exit code. */
export async function runAdmin(args: readonly string[], env: Environment, output: Output): Promise<number> {
  try {
    output.stdout.write(`${await answer(args, env)}\n`);
    return 0;
  } catch (error) {
    output.stderr.write(explain(error));
    return 1;
  }
}
