import { expect, onTestFinished, test } from "vitest";
import type { Deployment } from "../support/deployment.ts";

/** Demand for workers in a deployment that has none, and whose creates wait a minute for a worker. */
export function poolDemandTest(deploymentOf: () => Deployment): void {
  test("control processes report the workers that a pool needs, and gateways their open streams", async () => {
    const deployment = deploymentOf();
    const gateway = deployment.gateway(0);
    const demand = async (name: string, process: { readonly internalUrl: string } = deployment.control(0)) => {
      const response = await fetch(`${process.internalUrl}/scale/${name}`);
      return response.status === 200 ? await response.json() : response.status;
    };
    const demandBecomes = (expected: object) =>
      expect.poll(() => demand("small"), { timeout: 20_000 }).toEqual({ slots_per_worker: 2, ...expected });

    const worker = await deployment.fakeWorker(0, { slots: 2, pool: "small" });
    onTestFinished(() => worker.die());
    expect(await Promise.all(["default", "Small", "..%2Fmetrics", ""].map((name) => demand(name)))).toEqual(
      Array(4).fill(404),
    );
    await demandBecomes({ wanted_workers: 1, held_slots: 0, waiting: 0, headroom_slots: 2 });

    const create = () => gateway.rest("/v1/sessions", {});
    const first = await create();
    await create();
    const third = create();
    await demandBecomes({ wanted_workers: 3, held_slots: 2, waiting: 1, headroom_slots: 2 });
    await gateway.rest(`/v1/sessions/${first.body.id}`, undefined, { method: "DELETE" });
    expect((await third).status).toBe(201);
    await demandBecomes({ wanted_workers: 2, held_slots: 2, waiting: 0, headroom_slots: 2 });

    worker.fallSilent();
    await worker.heartbeat({ sessions: [], closedBy: "memory" });
    await demandBecomes({ wanted_workers: 2, held_slots: 2, waiting: 0, headroom_slots: 2 });
    await worker.heartbeat({ draining: true });
    await demandBecomes({ wanted_workers: 1, held_slots: 0, waiting: 0, headroom_slots: 2 });

    expect(await demand("gateway", gateway)).toEqual({ open_streams: 0 });
    const leaving = new AbortController();
    const headers = { authorization: `Bearer ${deployment.key}`, accept: "text/event-stream" };
    await fetch(`${gateway.url}/v1/account/watch`, { headers, signal: leaving.signal });
    expect(await demand("gateway", gateway)).toEqual({ open_streams: 1 });
    leaving.abort();
    await expect.poll(() => demand("gateway", gateway), { timeout: 20_000 }).toEqual({ open_streams: 0 });
  }, 120_000);
}
