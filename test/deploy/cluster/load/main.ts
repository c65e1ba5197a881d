import type { BrowserSession } from "../../../../sdk/typescript/src/index.ts";
import { driveByName } from "./cdp-clients.ts";
import { connectSteadily } from "./connections.ts";
import { type LoadRun, reported } from "./run.ts";
import { clientOf, driveSession } from "./sessions.ts";

/*
 * Holds load on a service until its input ends, and prints what it counted and what failed as JSON:
 * main.ts URL KEY SESSIONS CDP_CLIENTS REPEATS
 */

const [url = "", key = "", sessionCount = "1", clientCount = "0", repeats = "0"] = process.argv.slice(2);
const over = new AbortController();
const run: LoadRun = {
  url,
  key,
  over: over.signal,
  counts: { connections: 0, commands: 0, events: 0, reconnects: 0, repeats: 0 },
  failures: [],
};

const client = clientOf(run);
const sessions: BrowserSession[] = [];
// Four launches at a time, so that two cores finish each within its deadline.
while (sessions.length < Number(sessionCount)) {
  const create = () => client.sessions.create({ timeout_seconds: 600 });
  sessions.push(
    ...(await Promise.all(Array.from({ length: Math.min(4, Number(sessionCount) - sessions.length) }, create))),
  );
}
const cdpClients = Array.from({ length: Number(clientCount) }, (_, index) => {
  const name = `client-${index}`;
  const { promise: connected, resolve } = Promise.withResolvers<void>();
  const driven = reported(run, `CDP ${name}`, driveByName(run, name, resolve)).finally(resolve);
  return { connected, driven };
});
await Promise.all(cdpClients.map(({ connected }) => connected));
const driven = [
  connectSteadily(run, Number(repeats)),
  ...sessions.map((session) => reported(run, `session ${session.id}`, driveSession(run, client, session))),
  ...cdpClients.map((each) => each.driven),
];
process.stdout.write("started\n");
process.stdin.resume().once("end", () => over.abort());
await Promise.all(driven);
// The pipe holds only the beginning of a long report.
process.stdout.write(`${JSON.stringify({ ...run.counts, failures: run.failures })}\n`, () => process.exit());
