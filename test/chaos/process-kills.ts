import { sql } from "kysely";
import { beforeAll, expect, test } from "vitest";
import { openDatabase } from "../../src/platform/postgres/database.ts";
import { silentLog } from "../support/database.ts";
import { isStillThere } from "../support/process-list.ts";
import { findPid } from "../support/processes.ts";
import type { DoomedService } from "./doomed-service.ts";
import { entryOf } from "./session-ledger.ts";

/** Kills of a service's supervisor, gateway and control process. */
export function processKillTests(doomedOf: () => DoomedService): void {
  let doomed: DoomedService;
  beforeAll(() => {
    doomed = doomedOf();
  });

  const isReady = async (): Promise<boolean> => (await fetch(`${doomed.service.internalUrl}/readyz`)).ok;

  /** Milliseconds since the worker's last heartbeat. */
  async function lastHeartbeatAgo(): Promise<number> {
    const db = openDatabase({ url: doomed.service.databaseUrl }, silentLog, 1);
    const ago = sql<number>`(extract(epoch from now() - max(heard_at)) * 1000)::int`.as("ago");
    const row = await db.sql.selectFrom("worker_leases").select(ago).executeTakeFirst();
    await db.close();
    return row?.ago ?? Number.NaN;
  }

  test("a supervisor that replaces a killed one keeps its sessions", async () => {
    const session = await doomed.create();
    const { answer } = await doomed.beginNavigation(session);
    const { workerPid, postmasterPid, browsers } = doomed;
    await doomed.replaceSupervisor();
    await expect(answer).rejects.toThrow("fetch failed");

    expect([doomed.workerPid, doomed.postmasterPid]).toEqual([workerPid, postmasterPid]);
    const again = await doomed.rest(`${session}/navigate`, { url: doomed.site.url("/plain.html") });
    expect(again).toMatchObject({ status: 200, body: { http_status: 200 } });
    expect(browsers.filter(isStillThere)).toEqual(browsers);
    expect(await entryOf(doomed, session)).toMatchObject({ status: "live", terminalEvents: [] });
  }, 120_000);

  test("a service restarts after supervisor, worker and PostgreSQL were killed at once", async () => {
    const session = await doomed.create();
    const { browsers } = doomed;
    await doomed.killSupervisor(doomed.workerPid, doomed.postmasterPid);
    await doomed.restart();
    await doomed.createEventually();
    expect(await entryOf(doomed, session)).toEqual({
      status: "errored",
      endedReason: "worker_lost",
      terminalEvents: ["session.failed"],
    });
    expect(browsers.filter(isStillThere)).toEqual([]);
  }, 120_000);

  test.each(["gateway", "control"] as const)(
    "a killed %s is replaced and ends no session",
    async (name) => {
      const session = await doomed.create();
      const { workerPid, browsers } = doomed;
      const killed = doomed.service.pidOf(name);
      await doomed.kill(killed);
      await expect.poll(() => findPid(doomed.service.dataDir, name), { timeout: 10_000 }).toBeDefined();
      await expect.poll(isReady, { timeout: 20_000 }).toBe(true);
      expect(doomed.service.pidOf(name)).not.toBe(killed);
      // A lease later, the worker has sent a heartbeat again.
      await expect.poll(lastHeartbeatAgo, { timeout: 10_000 }).toBeLessThan(2_500);
      expect(doomed.workerPid).toBe(workerPid);
      expect(browsers.filter(isStillThere)).toEqual(browsers);
      const again = await doomed.rest(`${session}/navigate`, { url: doomed.site.url("/plain.html") });
      expect(again).toMatchObject({ status: 200, body: { http_status: 200 } });
      expect(await entryOf(doomed, session)).toMatchObject({ status: "live", terminalEvents: [] });
      expect((await doomed.rest(session, undefined, { method: "DELETE" })).status).toBe(204);
    },
    120_000,
  );
}
