import { create } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import type { EventLog } from "../../events/event-log.ts";
import {
  AgentSessionEndedEventSchema,
  AgentSessionModeChangedEventSchema,
  type AgentSessionService,
  type HandBackRequest,
  type ListAgentSessionsRequest,
  ListAgentSessionsResponseSchema,
  type SetAgentModeRequest,
  type TakeOverRequest,
  type WatchAgentSessionRequest,
} from "../../gen/pilothouse/v1/agent_session_pb.ts";
import type { Event } from "../../gen/pilothouse/v1/common_pb.ts";
import type { Control } from "../../gen/pilothouse/v1/session_pb.ts";
import type { Call } from "../../kernel/call.ts";
import type { ServiceImplementation } from "../../kernel/registry.ts";
import type { Clock } from "../../platform/clock.ts";
import { fail } from "../../platform/errors.ts";
import { cutPage, readCursor } from "../../platform/list-page.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import { callerOf, type SessionCaller } from "../../sessions/commands/session-caller.ts";
import type { Controls } from "../../sessions/control/control.ts";
import { splitLabel } from "../../sessions/launch/split-label.ts";
import { toStoredStatus } from "../../sessions/session-message.ts";
import { toAgentSessionMessage, toModeMessage, toStoredMode } from "./agent-session-message.ts";
import { agentClientId, agentSessionId, findAny, findRunning } from "./agent-sessions.ts";
import { type ControlChange, changeControl } from "./control-change.ts";
import { type CreationParts, createCreation } from "./creation.ts";
import { endAgentSession, listAgentSessions, writeMode } from "./store.ts";

export interface AgentSessionServiceParts extends CreationParts {
  readonly clock: Clock;
  readonly events: EventLog;
  readonly controls: Controls;
}

const defaultPage = 20;

export function createAgentSessionService(
  parts: AgentSessionServiceParts,
): ServiceImplementation<typeof AgentSessionService> {
  const { db, sessions, controls, events, clock, bus } = parts;

  async function list({ principal }: Call, { limit = defaultPage, cursor, status, label }: ListAgentSessionsRequest) {
    const query = {
      accountId: principal.accountId,
      status: toStoredStatus(status),
      labels: Object.fromEntries(label.map(splitLabel)),
      before: readCursor(cursor, agentSessionId),
    };
    const { rows, position } = cutPage(await listAgentSessions(db, { ...query, limit: limit + 1 }), limit);
    return create(ListAgentSessionsResponseSchema, { data: rows.map(toAgentSessionMessage), ...position });
  }

  /** Locks the browser session of an agent session, and returns both rows as read after the lock. */
  async function lock(tx: Tx, call: Call, id: string) {
    const { session_id: sessionId } = await findRunning(tx, call, id);
    const row = await controls.lock(tx, sessionId, call.principal.accountId);
    return { row, agent: await findRunning(tx, call, id) };
  }

  async function change(
    call: Call,
    transition: ControlChange["transition"],
    { id, clientId: requested }: TakeOverRequest | HandBackRequest,
  ): Promise<Control> {
    const clientId = agentClientId(call, requested);
    return changeControl(parts, {
      transition,
      call,
      clientId,
      commit: (run) => call.commit(run),
      lock: (tx) => lock(tx, call, id),
      audit: (tx, row) => call.audit(tx, { subject: id, data: { client_id: clientId, session_id: row.id } }),
    });
  }

  async function setMode(call: Call, { id, mode: wanted }: SetAgentModeRequest) {
    const mode = toStoredMode(wanted);
    return call.commit(async (tx) => {
      const { row, agent } = await lock(tx, call, id);
      if (mode === agent.mode) {
        call.markUnchanged();
        return toAgentSessionMessage(agent);
      }
      if (mode === "agent" && row.control_holder !== null) {
        const held = { from: "human_control", transition: "mode", holder_client_id: row.control_holder } as const;
        throw fail("pair-mode-invalid-transition", held, {
          detail: `the client ${row.control_holder} holds control: hand it back first`,
        });
      }
      await writeMode(tx, id, mode);
      const data = { agentSessionId: id, sessionId: row.id, mode: toModeMessage(mode) };
      const event = create(AgentSessionModeChangedEventSchema, data);
      await events.append(
        tx,
        { accountId: row.account_id, subject: row.id },
        AgentSessionModeChangedEventSchema,
        event,
      );
      call.audit(tx, { subject: id, data: { mode } });
      return toAgentSessionMessage(await findRunning(tx, call, id));
    });
  }

  /** Ends an agent session while its browser session continues, and releases control. */
  async function detach(call: Call, id: string): Promise<void> {
    const sessionId = await db.transaction(async (tx) => {
      const { row, agent } = await lock(tx, call, id);
      if (row.control_holder !== null) await controls.release(tx, row);
      await endAgentSession(tx, agent, new Date(clock.now()));
      const event = create(AgentSessionEndedEventSchema, { agentSessionId: id, sessionId: row.id });
      await events.append(tx, { accountId: row.account_id, subject: row.id }, AgentSessionEndedEventSchema, event);
      call.audit(tx, { subject: id, data: { session_id: row.id } });
      tx.afterCommit(() => bus.publish("session-changed", row.id));
      return row.id;
    });
    await sessions.notifyControl(callerOf(call), sessionId);
  }

  async function destroy(call: Call, { id }: { readonly id: string }) {
    const agent = await findRunning(db, call, id);
    if (agent.owns_session) {
      const caller: SessionCaller = {
        ...callerOf(call),
        audit: (tx, { subject }) => void call.audit(tx, { subject: id, data: { session_id: subject } }),
      };
      await sessions.end(caller, agent.session_id, { reason: "destroyed" });
    } else await detach(call, id);
    return create(EmptySchema);
  }

  async function* watch(call: Call, { id, afterEventId: after }: WatchAgentSessionRequest): AsyncGenerator<Event> {
    const { session_id: sessionId } = await (after === undefined ? findRunning : findAny)(db, call, id);
    const onStart = (eventId: string) => call.startAfter(eventId);
    for await (const event of sessions.follow({ caller: call, id: sessionId, after, signal: call.signal, onStart })) {
      yield event;
      if (event.type === "agent_session.ended" && event.data?.agent_session_id === id) return;
    }
  }

  return {
    create: createCreation(parts),
    list,
    get: async (call, { id }) => toAgentSessionMessage(await findRunning(db, call, id)),
    setMode,
    takeOver: (call, request) => change(call, "takeover", request),
    handBack: (call, request) => change(call, "handback", request),
    destroy,
    watch,
  };
}
