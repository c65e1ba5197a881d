import { listWorkers, requestDrain } from "../../src/fleet/operator-store.ts";
import { StartRefused } from "../../src/platform/start-refused.ts";
import type { AdminCommand } from "./command.ts";
import { asOperator } from "./operator.ts";

export const listAllWorkers: AdminCommand = {
  help: `workers

  prints the running workers, and those that left or were lost within the last day, a line of JSON each`,
  options: [],
  run: (_given, env) =>
    asOperator(env, async ({ db }) => (await listWorkers(db)).map((worker) => JSON.stringify(worker)).join("\n")),
};

export const drainWorker: AdminCommand = {
  help: `drain <worker id>

  stops new sessions on a worker, which exits after its last session, at the latest after its
  DRAIN_SECONDS; a restarted worker accepts sessions again`,
  options: [],
  argument: "worker id",
  run({ "worker id": id = "" }, env) {
    if (!env.DATABASE_URL)
      throw new StartRefused("drain is for separate workers: the embedded worker drains when its service is stopped");
    return asOperator(env, async ({ db }) => {
      if (await requestDrain(db, id)) return `${id} accepts no new sessions, and exits after its last one.`;
      const worker = (await listWorkers(db)).find((listed) => listed.id === id);
      if (!worker) throw new StartRefused(`there is no worker ${id}: \`npm run admin -- workers\` prints all`);
      throw new StartRefused(`worker ${id} ${worker.state === "left" ? "has" : "is"} ${worker.state} already`);
    });
  },
};
