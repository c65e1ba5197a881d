import { create } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createAgentInputService } from "../../../src/agents/sessions/input-service.ts";
import { createAgentSessionService } from "../../../src/agents/sessions/service.ts";
import {
  InputEventSchema,
  SendInputRequestSchema,
  StreamInputRequestSchema,
} from "../../../src/gen/pilothouse/v1/agent_input_pb.ts";
import {
  CreateAgentSessionRequestSchema,
  TakeOverRequestSchema,
} from "../../../src/gen/pilothouse/v1/agent_session_pb.ts";
import { createControlHeartbeats } from "../../../src/sessions/control/control-heartbeats.ts";
import { type SessionsApp, startSessionsApp } from "../../support/sessions-app.ts";
import { createTestClock } from "../../support/test-clock.ts";

const clock = createTestClock({ isStill: true });
let running: SessionsApp;
/** Holders that the worker was notified of, "" for none. */
const told: string[] = [];

beforeAll(async () => {
  running = await startSessionsApp({}, { clock });
  await running.worker({
    slots: 10,
    handlers: {
      async setControl(_call, { context }) {
        told.push(context?.holderClientId ?? "");
        return create(EmptySchema);
      },
    },
  });
});
afterAll(() => running[Symbol.asyncDispose]());

/** Waits for a condition with a timeout for busy machines. */
const eventually = <Value>(look: () => Value) => expect.poll(look, { timeout: 20_000 });

test("ends control after 30 s without a heartbeat", async () => {
  const agents = createAgentSessionService(running.app);
  const people = createAgentInputService(running.app);
  const call = await running.caller();
  const { id, sessionId } = await agents.create(call(), create(CreateAgentSessionRequestSchema));
  const stop = new AbortController();
  const causes: unknown[] = [];
  const { accountId } = call().principal;
  // Watches the log directly, because it reports when the watch has started.
  const changes = await running.app.events.watch({ accountId, subject: sessionId, signal: stop.signal });
  const watching = (async () => {
    for await (const { type, data } of changes) if (type === "session.control_changed") causes.push(data?.cause);
  })();
  const take = async (clientId: string) => agents.takeOver(call(), create(TakeOverRequestSchema, { id, clientId }));
  const holder = async () =>
    (await agents.get(call(), { $typeName: "pilothouse.v1.GetAgentSessionRequest", id })).control;
  const press = create(InputEventSchema, { event: { case: "text", value: { text: "a" } } });
  const send = (clientId: string) =>
    people.sendInput(call(), create(SendInputRequestSchema, { id, clientId, event: press }));
  /** Seconds until control expires. */
  const left = async () => Number((await holder())?.lapsesAt?.seconds ?? 0n) - Math.floor(clock.now() / 1_000);

  await take("anna");
  clock.advance(20_000);
  await send("anna");
  await eventually(left).toBe(30);
  clock.advance(29_000);
  await expect(take("ben")).rejects.toMatchObject({ extensions: { winner_client_id: "anna" } });
  clock.advance(1_001);
  await eventually(async () => (await holder())?.state).toBe("agent_control");
  await eventually(() => told.filter((holder, index) => holder !== told[index - 1])).toEqual(["anna", ""]);

  // Control has expired although no sweep has run yet.
  await take("ben");
  clock.advance(30_000);
  const { holderClientId } = await take("anna");
  expect(holderClientId).toBe("anna");
  await eventually(() => causes).toEqual(["takeover", "lapsed", "takeover", "lapsed", "takeover"]);
  stop.abort();
  await watching;
});

test("keeps control by heartbeats until the last input is 5 minutes old", async () => {
  const agents = createAgentSessionService(running.app);
  const call = await running.caller();
  const { id } = await agents.create(call(), create(CreateAgentSessionRequestSchema));
  const takenAt = clock.now();
  await agents.takeOver(call(), create(TakeOverRequestSchema, { id, clientId: "anna" }));
  const control = async () =>
    (await agents.get(call(), { $typeName: "pilothouse.v1.GetAgentSessionRequest", id })).control;
  /** Sends a heartbeat through a new gateway, which writes it immediately. */
  async function beat(): Promise<void> {
    const controlHeartbeats = createControlHeartbeats({ ...running.app, clock });
    const message = create(StreamInputRequestSchema, { agentSessionId: id, clientId: "anna" });
    const talk = await createAgentInputService({ ...running.app, controlHeartbeats }).streamInput(call(), message);
    if ("relay" in talk) throw new Error("input is a conversation");
    expect(await Array.fromAsync(talk.answer(message))).toEqual([]);
    expect(await Array.fromAsync(talk.finish?.() ?? [])).toEqual([
      { acknowledgement: { sequence: 0, accepted: 0, dropped: 0 } },
    ]);
    controlHeartbeats.stop();
  }
  for (let step = 1; step <= 10; step += 1) {
    clock.advance(28_000);
    await beat();
    const lapsesAt = Math.min(clock.now() + 30_000, takenAt + 300_000);
    await eventually(async () => Number((await control())?.lapsesAt?.seconds)).toBe(Math.floor(lapsesAt / 1_000));
  }
  clock.advance(takenAt + 300_000 - clock.now());
  await eventually(async () => (await control())?.state).toBe("agent_control");
});

test("an input stream that cannot report control ends with the error", async () => {
  const call = await running.caller();
  const { id } = await createAgentSessionService(running.app).create(call(), create(CreateAgentSessionRequestSchema));
  const events = { watch: () => Promise.reject(new Error("no event log")) };
  // Implements only the used part of the event log.
  const people = createAgentInputService({ ...running.app, events: events as never });
  const message = create(StreamInputRequestSchema, { agentSessionId: id, clientId: "anna" });
  const talk = await people.streamInput(call(), message);
  if ("relay" in talk) throw new Error("input is a conversation");
  const signal = AbortSignal.timeout(5_000);
  await expect(Array.fromAsync(talk.unsolicited?.(signal) ?? [])).rejects.toThrow("no event log");
});
