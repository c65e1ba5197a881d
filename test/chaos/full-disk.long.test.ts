import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { mountSmallDisk } from "../support/small-disk.ts";
import { DoomedService } from "./doomed-service.ts";
import { faultsOf, readLedger } from "./session-ledger.ts";

/** A new cluster uses 60 MiB including its log. */
const size = "160m";

/** Milliseconds until PostgreSQL has recovered after space was freed. */
const recovery = 60_000;

const longerThanALease = 10_000;

/** Number of sessions that fit into the allocated pages of the database. */
const maxUses = 200;

test("a full disk fails writes with an error, ends no session, and recovers when space is freed", async () => {
  const disk = mountSmallDisk(size);
  onTestFinished(() => disk[Symbol.dispose]());
  const doomed = await DoomedService.start({}, disk.directory);
  onTestFinished(() => doomed[Symbol.asyncDispose]());
  const steady = await doomed.create();
  const drive = async () => (await doomed.rest(`${steady}/navigate`, { url: doomed.site.url("/plain.html") })).status;
  expect(await drive()).toBe(200);

  const free = disk.fill();
  const useOne = async () => {
    const { status, body } = await doomed.rest("/v1/sessions", { labels: { filler: "x".repeat(200) } });
    if (status !== 201) return { status, type: body.type };
    const { status: ended, body: fault } = await doomed.rest(`/v1/sessions/${body.id}`, undefined, {
      method: "DELETE",
    });
    return ended === 204 ? undefined : { status: ended, type: fault.type };
  };
  let failed: Awaited<ReturnType<typeof useOne>>;
  for (let left = maxUses; left > 0 && !failed; left -= 1) failed = await useOne();
  // Earlier creates may have used all slots, whose release cannot be stored.
  expect([failed?.status, failed?.type]).toEqual(
    failed?.status === 503
      ? [503, expect.stringMatching(/capacity-unavailable$/)]
      : [500, expect.stringMatching(/internal$/)],
  );
  await delay(longerThanALease);
  expect(await drive()).toBe(200);

  free();
  await expect.poll(useOne, { timeout: recovery, interval: 500 }).toBeUndefined();
  expect(await drive()).toBe(200);
  expect((await doomed.rest(steady, undefined, { method: "DELETE" })).status).toBe(204);
  await expect.poll(async () => faultsOf(await readLedger(doomed), []), { timeout: recovery }).toEqual([]);
  await doomed.expectCleanEnd();
}, 240_000);
