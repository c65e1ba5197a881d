import { afterAll, beforeAll, expect, test } from "vitest";
import { isStillThere } from "../support/process-list.ts";
import { DoomedService } from "./doomed-service.ts";
import { faultsOf, readLedger } from "./session-ledger.ts";

/** Milliseconds of a lease, and what the worker then takes to end its sessions and itself. */
const leaseAndEnd = 30_000;

/** A gateway is killed so often while sessions are made and destroyed, each time after so many ids were received. */
const rounds = [1, 3, 5];

let doomed: DoomedService;

beforeAll(async () => {
  // A slot for each launch that a killed gateway leaves behind: they are given back when they are overdue, 90 s later.
  doomed = await DoomedService.start({ WORKER_SLOTS: "12" });
});

afterAll(() => doomed[Symbol.asyncDispose]());

/** Makes and destroys sessions without pause until the gateway goes; gives the ids that were received. */
async function churn(received: Set<string>): Promise<void> {
  try {
    for (;;) {
      const { status, body } = await doomed.rest("/v1/sessions", {});
      if (status === 201) {
        received.add(body.id);
        await doomed.rest(`/v1/sessions/${body.id}`, undefined, { method: "DELETE" });
      }
    }
  } catch {
    // The gateway is gone, and the connection with it.
  }
}

test("should list every id that a client received, however often the gateway is killed among creates and destroys", async () => {
  const received = new Set<string>();
  for (const wanted of rounds) {
    const enough = received.size + wanted;
    const clients = [churn(received), churn(received), churn(received)];
    await expect.poll(() => received.size, { timeout: 60_000, interval: 5 }).toBeGreaterThanOrEqual(enough);
    await doomed.killSupervisor();
    await Promise.all(clients);
    await doomed.restart();
    expect(faultsOf(await readLedger(doomed), received)).toEqual([]);
  }
  await doomed.createEventually();
}, 180_000);

test("should end its sessions when the gateway comes back after more than a lease", async () => {
  const before = await readLedger(doomed);
  const running = [...before].filter(([, { status }]) => status === "live").map(([id]) => id);
  expect(running.length).toBeGreaterThan(0);
  const { browsers, workerPid } = doomed;
  await doomed.killSupervisor();
  await expect.poll(() => browsers.filter(isStillThere), { timeout: leaseAndEnd }).toEqual([]);
  await doomed.restart();

  await doomed.createEventually();
  expect(doomed.workerPid).not.toBe(workerPid);
  const after = await readLedger(doomed);
  expect(faultsOf(after, before.keys())).toEqual([]);
  expect(running.map((id) => after.get(id))).toEqual(
    running.map(() => ({ status: "errored", endedReason: "worker_lost", terminalEvents: ["session.failed"] })),
  );
}, 120_000);
