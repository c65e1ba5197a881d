import { readFileSync } from "node:fs";
import { join } from "node:path";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import type { BrowserRuntime } from "../../src/platform/browser-paths.ts";
import { descendantsOf } from "../support/process-list.ts";
import { type Found, ProfileSites } from "../support/profile-sites.ts";
import { type Rest, restClient } from "../support/rest.ts";
import { type Service, startService } from "../support/service.ts";
import type { Bench, Row, Scale } from "./bench.ts";
import { awaitSaved, createProfile } from "./profile-client.ts";

/** Milliseconds for a session that has to be created while the worker starts again, and for one whose time runs out. */
const patience = { create: 60_000, expiry: 80_000 };

interface Stage {
  readonly service: Service;
  readonly rest: Rest;
  readonly sites: ProfileSites;
  readonly scale: Scale;
}

/** What of a profile of 20 sites comes back after the hard ends of its session. */
export const profileSurvival: Bench = {
  name: "profile-survival",
  title: "sites of 20 that come back whole after kill -9, at once after the last visit; one figure for each run",
  async run(scale): Promise<Row[]> {
    const sites = await new ProfileSites().start();
    const service = await startService({ EGRESS_ALLOW: "127.0.0.0/8" });
    try {
      const stage = { service, rest: restClient(service), sites, scale };
      const rows = [];
      for (const runtime of ["headless-shell", "chromium"] as const) {
        for (const end of Object.keys(ends)) rows.push(await surviveAll(stage, runtime, end));
      }
      return rows;
    } finally {
      await service.stop();
      await sites.stop();
    }
  },
};

/** How sessions end, and how often that is tried. */
const ends: Readonly<Record<string, (stage: Stage, session: string) => Promise<void>>> = {
  "kill -9 of the browser": async ({ service }) => {
    const worker = workerOf(service);
    const browsers = descendantsOf(worker).filter(({ parent, command }) => parent === worker && /chrom/.test(command));
    for (const { pid } of browsers) process.kill(pid, "SIGKILL");
  },
  "kill -9 of the worker": async ({ service }) => {
    process.kill(workerOf(service), "SIGKILL");
  },
  expiry: async ({ rest }, session) => {
    const isExpired = async (): Promise<boolean> => (await rest(session)).body.ended_reason === "expired";
    if (!(await waitUntil(isExpired, { timeout: patience.expiry, every: 200 }))) throw new Error("no expiry");
  },
};

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
  await waitUntil(tryOnce, { timeout: patience.create, every: 100 });
  if (path === undefined) throw new Error("no session could be created");
  return path;
}

async function survive(stage: Stage, runtime: BrowserRuntime, end: string): Promise<Found> {
  const { rest, sites } = stage;
  const profile_id = await createProfile(rest);
  const request = { profile_id, runtime, timeout_seconds: end === "expiry" ? 60 : 600 };
  const session = await create(stage, request);
  await sites.visit(rest, session, { left: "one", isApart: true });
  const since = new Date();
  await ends[end]?.(stage, session);
  await awaitSaved(rest, profile_id, since);
  const again = await create(stage, request);
  const found = await sites.visit(rest, again, { found: "one" });
  await rest(again, undefined, { method: "DELETE" });
  return found;
}

async function surviveAll(stage: Stage, runtime: BrowserRuntime, end: string): Promise<Row> {
  const runs = end === "expiry" ? 1 : stage.scale.of(10, 2);
  const found: Found[] = [];
  while (found.length < runs) found.push(await survive(stage, runtime, end));
  const figures = (part: keyof Found): string => found.map((one) => one[part]).join(" ");
  return {
    what: `${end}, ${runtime}`,
    ours: `IndexedDB ${figures("indexedDb")}; localStorage ${figures("localStorage")}`,
    bare: "-",
    verdict: `cookies, those of the last 10 s excepted: ${figures("lastingCookies")}; of the session: ${figures("sessionCookies")}`,
  };
}
