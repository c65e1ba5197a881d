import { afterAll, beforeAll, expect, test } from "vitest";
import { isStillThere } from "../support/process-list.ts";
import { DoomedService } from "./doomed-service.ts";
import { faultsOf, readLedger } from "./session-ledger.ts";

/** Milliseconds of a lease plus the time in which the worker ends its sessions and exits. */
const leaseAndEnd = 30_000;

/** Received ids after which the gateway is killed, once per round. */
const rounds = [1, 3, 5];

let doomed: DoomedService;

beforeAll(async () => {
  // A slot for each launch that a killed gateway leaves behind. Overdue launches release their slots after 90 s.
  doomed = await DoomedService.start({ WORKER_SLOTS: "12" });
});

afterAll(() => doomed[Symbol.asyncDispose]());

/** Creates and destroys sessions continuously until the gateway is killed, and collects the received ids. */
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
    // The gateway was killed, which broke the connection.
  }
}

test("the list has every id that clients received, although the gateway is killed repeatedly", async () => {
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

test("a worker ends its sessions before a gateway returns after more than a lease", async () => {
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
