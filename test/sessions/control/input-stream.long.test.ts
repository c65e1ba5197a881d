import { afterAll, beforeAll, expect, test } from "vitest";
import { InputLedger } from "../../support/input-ledger.ts";
import { acknowledgedAll, expectedOfRun, presses, sendAtRate, strayPresses } from "../../support/input-run.ts";
import { type InputTarget, inputTransports, openInput } from "../../support/input-stream.ts";
import { restClient } from "../../support/rest.ts";
import { type Service, startService } from "../../support/service.ts";

const count = 20_000;

let ledger: InputLedger;
let service: Service;
let target: InputTarget;
beforeAll(async () => {
  ledger = await InputLedger.start();
  service = await startService({ EGRESS_ALLOW: ledger.host });
  const { url, grpcAddress, key } = service;
  const rest = restClient(service);
  const { body } = await rest("/v1/agent-sessions", { timeout_seconds: 3_600 });
  await rest(`/v1/sessions/${body.session_id}/navigate`, { url: ledger.url });
  await rest(`/v1/agent-sessions/${body.id}/takeover`, { client_id: "anna" });
  target = { url, grpcAddress, key, agentId: body.id, clientId: "anna" };
}, 120_000);
afterAll(async () => {
  await service?.stop();
  await ledger?.[Symbol.asyncDispose]();
}, 60_000);

test.each(inputTransports)(
  "delivers 20,000 events over %s once and in order, with each press at the pointer",
  {
    timeout: 400_000,
  },
  async (transport) => {
    ledger.received.length = 0;
    using stream = await openInput(transport, target);
    await sendAtRate(count, 250, (event) => stream.send([event]));
    await acknowledgedAll(stream, 120_000);
    expect(stream.acknowledged).toMatchObject({ sequence: count, accepted: count, dropped: 0 });
    const expected = expectedOfRun(count);
    await expect
      .poll(() => presses(ledger.received).length, { timeout: 120_000 })
      .toBeGreaterThanOrEqual(expected.length);
    expect(presses(ledger.received)).toEqual(expected);
    expect(strayPresses(ledger.received)).toEqual([]);
  },
);
