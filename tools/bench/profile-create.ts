import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { chromium } from "playwright";
import type { BrowserRuntime } from "../../src/platform/browsers/browser-paths.ts";
import { ProfileSites } from "../../test/support/profile-sites.ts";
import { type Rest, restClient } from "../../test/support/rest.ts";
import { startService } from "../../test/support/service.ts";
import { type Bench, type Row, ratioVerdict, type Scale } from "./bench.ts";
import { browserPath, sandboxFlags } from "./browsers.ts";
import { Client } from "./client.ts";
import { awaitSaved, createProfile } from "./profile-client.ts";
import { interleave, median, spread } from "./samples.ts";

const bar = 1.3;

/** Milliseconds to wait, outside the measurement, until the isolation slot of an ended session is cleared. */
const teardownMs = 500;

/** Time that a profile of 20 sites adds to the creation of a session. */
export const profileCreate: Bench = {
  name: "profile-create",
  title:
    "create with a profile of 20 sites through REST, against Playwright's launch of the same runtime on an empty directory",
  async run(scale): Promise<Row[]> {
    const sites = await new ProfileSites().start();
    const service = await startService({ EGRESS_ALLOW: "127.0.0.0/8" });
    try {
      using client = new Client(service);
      const scene = { rest: restClient(service), client, sites, scale };
      const rows = [];
      for (const runtime of ["headless-shell", "chromium"] as const) rows.push(await compare(scene, runtime));
      return rows;
    } finally {
      await service.stop();
      await sites.stop();
    }
  },
};

interface Scene {
  readonly rest: Rest;
  readonly client: Client;
  readonly sites: ProfileSites;
  readonly scale: Scale;
}

async function compare({ rest, client, sites, scale }: Scene, runtime: BrowserRuntime): Promise<Row> {
  const profile = await createProfile(rest);
  const create = () => client.create({ profile_id: profile, runtime });
  const end = async (session: string): Promise<void> => {
    await client.destroy(session);
    await awaitSaved(rest, profile);
    await delay(teardownMs);
  };
  const session = await create();
  await sites.visit(rest, session, { left: "bench" });
  await end(session);
  const ours = async (): Promise<number> => {
    const beganAt = performance.now();
    const created = await create();
    const took = performance.now() - beganAt;
    await end(created);
    return took;
  };
  const samples = await interleave({ ours, bare: () => launchBare(runtime) }, { rounds: scale.of(20, 6), warmUp: 2 });
  return {
    what: `create with a profile, ${runtime}`,
    ours: spread(samples.ours),
    bare: spread(samples.bare),
    verdict: ratioVerdict(median(samples.ours) / median(samples.bare), bar),
  };
}

/** Launches a browser on an empty directory. Returns the milliseconds until its page exists. */
async function launchBare(runtime: BrowserRuntime): Promise<number> {
  const directory = await mkdtemp(join(tmpdir(), "bare-"));
  const args = [...(runtime === "chromium" ? ["--headless=new"] : []), ...sandboxFlags];
  try {
    const beganAt = performance.now();
    const context = await chromium.launchPersistentContext(directory, { executablePath: browserPath(runtime), args });
    if (context.pages().length === 0) await context.newPage();
    const took = performance.now() - beganAt;
    await context.close();
    return took;
  } finally {
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  }
}
