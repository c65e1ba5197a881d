import { systemClock } from "../../src/platform/clock.ts";
import type { Environment } from "../../src/platform/environment.ts";
import type { Tx } from "../../src/platform/postgres/database.ts";
import { StartRefused } from "../../src/platform/start-refused.ts";
import { type ComponentName, componentNames, type Health, isComponentName } from "../../src/status/components.ts";
import { changeIncident, type IncidentRow, insertIncident, lockUnresolved } from "../../src/status/incident-store.ts";
import type { AdminCommand, Given } from "./command.ts";
import { asOperator } from "./operator.ts";
import { readTime } from "./read-time.ts";

const kinds = ["degraded", "partial_outage", "major_outage"] as const satisfies readonly Health[];

/** Reads a public text from an option. */
function readWords(given: Given, option: string, max: number): string {
  const words = given[option]?.trim() ?? "";
  if (words !== "" && words.length <= max && !/\p{Cc}/u.test(words)) return words;
  throw new StartRefused(`--${option} is required and accepts a line of 1 to ${max} characters`);
}

const readTitle = (given: Given): string => readWords(given, "title", 100);
const readText = (given: Given): string => readWords(given, "text", 1_000);

function readHealth(text: string | undefined): Health {
  const found = kinds.find((kind) => kind === text);
  if (found) return found;
  throw new StartRefused(`--health accepts ${kinds.join(", ")}, not ${text ?? "nothing"}`);
}

function readComponents(text: string | undefined): ComponentName[] {
  const names = (text ?? "").split(",");
  if (!names.every(isComponentName))
    throw new StartRefused(`--components accepts ${componentNames.join(", ")}, not ${text ?? "nothing"}`);
  return componentNames.filter((name) => names.includes(name));
}

/** Returns the active or planned incident with an id. */
async function find(tx: Tx, id: string | undefined, now: Date): Promise<IncidentRow> {
  const open = await lockUnresolved(tx, now);
  const found = open.find((incident) => incident.id === id);
  if (found) return found;
  const ids = open.map((incident) => incident.id).join(", ") || "none";
  throw new StartRefused(`--id accepts an incident that is not over (${ids}), not ${id ?? "nothing"}`);
}

/** Changes an incident that is not over. Gateways show the change from their next status sample on. */
async function change(env: Environment, run: (tx: Tx, now: Date) => Promise<string>): Promise<string> {
  return await asOperator(env, ({ db }) => db.transaction((tx) => run(tx, new Date(systemClock.now()))));
}

const shown = "gateways show it within 10 s, and notify subscribers by e-mail";

export const openIncident: AdminCommand = {
  help: `incident open --title <words> --health <health> --components <names> --text <sentences>

  opens an incident, in addition to automatic ones; ${shown}

  --health <health>       ${kinds.join(", ")}
  --components <names>    ${componentNames.join(",")}, or some of them
  --text <sentences>      public description`,
  options: ["title", "health", "components", "text"],
  run(given, env) {
    const incident = { title: readTitle(given), health: readHealth(given.health), text: readText(given) };
    const components = readComponents(given.components);
    return asOperator(env, ({ db, ids }) =>
      db.transaction(async (tx) => {
        const now = new Date(systemClock.now());
        const id = ids.next("inc");
        insertIncident(tx, { ...incident, components, id, origin: "operator", from: now }, now);
        return `The incident ${id} is open.`;
      }),
    );
  },
};

export const updateIncident: AdminCommand = {
  help: `incident update --id <incident> --text <sentences> [--health <health>]

  adds a text to an incident or maintenance, and sets its health;
  ${shown}`,
  options: ["id", "text", "health"],
  run(given, env) {
    const text = readText(given);
    const health = given.health === undefined ? undefined : readHealth(given.health);
    return change(env, async (tx, now) => {
      const { id, origin } = await find(tx, given.id, now);
      if (health && origin !== "operator")
        throw new StartRefused("--health applies only to incidents that the operator has opened");
      changeIncident(tx, id, text, now, health && { health });
      return `The update of the incident ${id} is published.`;
    });
  },
};

export const closeIncident: AdminCommand = {
  help: `incident close --id <incident> --text <sentences>

  ends an incident, or maintenance before its time;
  ${shown}`,
  options: ["id", "text"],
  run(given, env) {
    const text = readText(given);
    return change(env, async (tx, now) => {
      const { id, origin } = await find(tx, given.id, now);
      if (origin === "automatic") throw new StartRefused(`${id} is automatic and cannot be closed by hand`);
      changeIncident(tx, id, text, now, { resolved: true });
      return `The incident ${id} is closed.`;
    });
  },
};

export const maintenance: AdminCommand = {
  help: `maintenance --title <words> --components <names> --text <sentences> --from <time> --until <time>

  announces maintenance, which does not count as downtime;
  ${shown}

  --from <time>           such as 2030-01-31T12:00:00Z, or 90m, 12h, 7d from now (default: now)
  --until <time>          in the same form`,
  options: ["title", "components", "text", "from", "until"],
  run(given, env) {
    const [title, text, components] = [readTitle(given), readText(given), readComponents(given.components)];
    const to = readTime("until", given.until);
    const from = given.from === undefined ? new Date(systemClock.now()) : readTime("from", given.from);
    if (from >= to) throw new StartRefused("--until accepts a time after --from");
    return asOperator(env, ({ db, ids }) =>
      db.transaction(async (tx) => {
        const id = ids.next("inc");
        const incident = { id, title, text, components, origin: "maintenance", health: "maintenance" } as const;
        insertIncident(tx, { ...incident, from, to }, new Date(systemClock.now()));
        return `The maintenance ${id} is announced, from ${from.toISOString()} to ${to.toISOString()}.`;
      }),
    );
  },
};
