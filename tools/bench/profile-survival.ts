import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import type { BrowserRuntime } from "../../src/platform/browsers/browser-paths.ts";
import { descendantsOf } from "../../test/support/process-list.ts";
import { type Found, ProfileSites } from "../../test/support/profile-sites.ts";
import { type Rest, restClient } from "../../test/support/rest.ts";
import { type Service, startService } from "../../test/support/service.ts";
import type { Bench, Row, Scale } from "./bench.ts";
import { awaitSaved, createProfile } from "./profile-client.ts";

/** Milliseconds until cookies are stored outside the isolation slot, which happens every 10 s. */
const cookiesStoredMs = 11_000;

/** Milliseconds to create a session while the worker restarts, and for a session to expire. */
const timeouts = { create: 60_000, expiry: 80_000 };

interface Stage {
  readonly service: Service;
  readonly rest: Rest;
  readonly sites: ProfileSites;
  readonly scale: Scale;
}

/** Parts of a profile of 20 sites that survive abnormal ends of a session. */
export const profileSurvival: Bench = {
  name: "profile-survival",
  title: "number of 20 sites whose data survives an abnormal end of the session, one figure per run",
  async run(scale): Promise<Row[]> {
    const sites = await new ProfileSites().start();
    const service = await startService({ EGRESS_ALLOW: "127.0.0.0/8" });
    try {
      const stage = { service, rest: restClient(service), sites, scale };
      const rows = [];
      for (const runtime of ["headless-shell", "chromium"] as const) {
        for (const trial of trials) rows.push(await surviveAll(stage, runtime, trial));
      }
      return rows;
    } finally {
      await service.stop();
      await sites.stop();
    }
  },
};

/** End of a session, the delay after the last visit, and the number of tries. */
interface Trial {
  readonly what: string;
  readonly end: (stage: Stage, session: string) => Promise<void>;
  readonly afterMs: number;
  readonly runs: readonly [full: number, quick: number];
}

const killBrowser: Trial["end"] = async ({ service }) => {
  const worker = workerOf(service);
  const browsers = descendantsOf(worker).filter(({ parent, command }) => parent === worker && /chrom/.test(command));
  for (const { pid } of browsers) process.kill(pid, "SIGKILL");
};

const killWorker: Trial["end"] = async ({ service }) => {
  process.kill(workerOf(service), "SIGKILL");
};

const expire: Trial["end"] = async ({ rest }, session) => {
  const isExpired = async (): Promise<boolean> => (await rest(session)).body.ended_reason === "expired";
  if (!(await waitUntil(isExpired, { timeout: timeouts.expiry, every: 200 }))) throw new Error("no expiry");
};

const trials: readonly Trial[] = [
  { what: "kill -9 of the browser, at once", end: killBrowser, afterMs: 0, runs: [10, 2] },
  { what: "kill -9 of the worker, at once", end: killWorker, afterMs: 0, runs: [10, 2] },
  { what: "kill -9 of the browser, 11 s later", end: killBrowser, afterMs: cookiesStoredMs, runs: [3, 1] },
  { what: "kill -9 of the worker, 11 s later", end: killWorker, afterMs: cookiesStoredMs, runs: [3, 1] },
  { what: "expiry", end: expire, afterMs: 0, runs: [1, 1] },
];

function workerOf({ dataDir }: Service): number {
  return Number.parseInt(readFileSync(join(dataDir, "worker.pid"), "utf8"), 10);
}

async function create({ rest }: Stage, request: object): Promise<string> {
  let path: string | undefined;
  const tryOnce = async (): Promise<boolean> => {
    const { status, body } = await rest("/v1/sessions", request);
    if (status === 201) path = `/v1/sessions/${body.id}`;
    return path !== undefined;
  };
  await waitUntil(tryOnce, { timeout: timeouts.create, every: 100 });
  if (path === undefined) throw new Error("no session could be created");
  return path;
}

async function survive(stage: Stage, runtime: BrowserRuntime, { end, afterMs }: Trial): Promise<Found> {
  const { rest, sites } = stage;
  const profile_id = await createProfile(rest);
  const request = { profile_id, runtime, timeout_seconds: end === expire ? 60 : 600 };
  const session = await create(stage, request);
  await sites.visit(rest, session, { left: "one", isApart: true });
  await delay(afterMs);
  const since = new Date();
  await end(stage, session);
  await awaitSaved(rest, profile_id, since);
  const again = await create(stage, request);
  const found = await sites.visit(rest, again, { found: "one" });
  await rest(again, undefined, { method: "DELETE" });
  return found;
}

async function surviveAll(stage: Stage, runtime: BrowserRuntime, trial: Trial): Promise<Row> {
  const runs = stage.scale.of(...trial.runs);
  const found: Found[] = [];
  while (found.length < runs) found.push(await survive(stage, runtime, trial));
  const figures = (part: keyof Found): string => found.map((one) => one[part]).join(" ");
  return {
    what: `${trial.what}, ${runtime}`,
    ours: `IndexedDB ${figures("indexedDb")}; localStorage ${figures("localStorage")}`,
    bare: "-",
    verdict: `lasting cookies ${figures("lastingCookies")}; cookies of the session ${figures("sessionCookies")}`,
  };
}
