import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { pssBytes } from "../../../tools/bench/processes.ts";
import { InputLedger } from "../../support/input-ledger.ts";
import {
  type InputStream,
  type InputTarget,
  type InputTransport,
  inputTransports,
  openInput,
} from "../../support/input-stream.ts";
import { type Rest, restClient } from "../../support/rest.ts";
import { type Service, startService } from "../../support/service.ts";

/** Number of 100 kB pastes sent to a stalled receiver, and the memory in bytes that a process may use for them. */
const messages = 2_000;
const paste = [{ kind: "paste", text: "p".repeat(100_000) }];
const maxGrowth = 32 * 2 ** 20;

/** A key that stalls the page for 2 s. */
const stall = [
  { kind: "key_down", key: "F8" },
  { kind: "key_up", key: "F8" },
];
const stalls = 12;

/** Milliseconds: less than all stalls, because sending takes time, and less than a stopped worker's lease. */
const stalled = 14_000;
const stopped = 3_000;

let ledger: InputLedger;
let service: Service;
let rest: Rest;
let target: InputTarget;
let pids: { readonly gateway: number; readonly worker: number };
beforeAll(async () => {
  ledger = await InputLedger.start();
  service = await startService({ EGRESS_ALLOW: ledger.host });
  const { url, grpcAddress, key } = service;
  rest = restClient(service);
  pids = { gateway: service.pidOf("gateway"), worker: service.pidOf("worker") };
  const { body } = await rest("/v1/agent-sessions", { timeout_seconds: 3_600 });
  await rest(`/v1/sessions/${body.session_id}/navigate`, { url: ledger.url });
  await rest(`/v1/agent-sessions/${body.id}/takeover`, { client_id: "anna" });
  target = { url, grpcAddress, key, agentId: body.id, clientId: "anna" };
}, 120_000);
afterAll(async () => {
  await service?.stop();
  await ledger?.[Symbol.asyncDispose]();
}, 60_000);

/** Sends more than the limits, and returns the maximal growth of gateway and worker in bytes. */
async function flood(stream: InputStream, ms: number): Promise<{ gateway: number; worker: number }> {
  const memory = () => ({ gateway: pssBytes(pids.gateway), worker: pssBytes(pids.worker) });
  const before = memory();
  for (let message = 0; message < messages; message += 1) stream.send(paste);
  const max = { gateway: 0, worker: 0 };
  for (const end = Date.now() + ms; Date.now() < end; ) {
    await delay(250);
    const now = memory();
    for (const process of ["gateway", "worker"] as const) {
      max[process] = Math.max(max[process], now[process] - before[process]);
    }
  }
  return max;
}

/** Sends a first stream, which causes permanent allocations of the processes. */
async function warmUp(transport: InputTransport): Promise<void> {
  using stream = await openInput(transport, target);
  for (let message = 0; message < 40; message += 1) stream.send(paste);
  await expect.poll(() => stream.acknowledged.accepted, { timeout: 60_000 }).toBe(40);
}

test.each(inputTransports)(
  "buffers none of 200 MB over %s for a stalled page",
  { timeout: 180_000 },
  async (transport) => {
    await warmUp(transport);
    using stream = await openInput(transport, target);
    for (let count = 0; count < stalls; count += 1) stream.send(stall);
    const growth = await flood(stream, stalled);
    console.log(transport, growth, stream.acknowledged);
    expect(stream.acknowledged.accepted).toBeLessThan(stalls * 3);
    expect(growth.gateway).toBeLessThan(maxGrowth);
    expect(growth.worker).toBeLessThan(maxGrowth);
  },
);

test.each(inputTransports)(
  "buffers none of 200 MB over %s for a stalled worker",
  { timeout: 180_000 },
  async (transport) => {
    await warmUp(transport);
    using stream = await openInput(transport, target);
    process.kill(pids.worker, "SIGSTOP");
    const growth = await flood(stream, stopped).finally(() => process.kill(pids.worker, "SIGCONT"));
    console.log(transport, growth, stream.acknowledged);
    expect(growth.gateway).toBeLessThan(maxGrowth);
    await expect.poll(() => stream.acknowledged.accepted, { timeout: 30_000 }).toBeGreaterThan(0);
  },
);
