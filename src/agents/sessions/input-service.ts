import type { MessageInitShape } from "@bufbuild/protobuf";
import type { EventLog } from "../../events/event-log.ts";
import type {
  AgentInputService,
  SendInputRequest,
  StreamInputRequest,
  StreamInputResponseSchema,
} from "../../gen/pilothouse/v1/agent_input_pb.ts";
import type { Call } from "../../kernel/call.ts";
import type { Conversation, ServiceImplementation } from "../../kernel/registry.ts";
import { BoundedQueue } from "../../platform/bounded-queue.ts";
import { asFailure, failFields } from "../../platform/errors.ts";
import { IdleMap } from "../../platform/idle-map.ts";
import type { Database } from "../../platform/postgres/database.ts";
import { toProblem } from "../../platform/problem.ts";
import type { InputReceipt } from "../../sessions/commands/input-sender.ts";
import { callerOf } from "../../sessions/commands/session-caller.ts";
import type { ControlHeartbeats } from "../../sessions/control/control-heartbeats.ts";
import { findControl } from "../../sessions/control/store.ts";
import { toControlMessage } from "../../sessions/session-control.ts";
import type { Sessions } from "../../sessions/sessions.ts";
import { agentClientId, findRunning } from "./agent-sessions.ts";

export interface AgentInputParts {
  readonly db: Database;
  readonly sessions: Sessions;
  readonly events: EventLog;
  readonly controlHeartbeats: ControlHeartbeats;
  readonly config: { readonly errorsBase: string };
}

type Answer = MessageInitShape<typeof StreamInputResponseSchema>;

/** Milliseconds that a gateway caches the browser session of an agent session after its last use. */
const knownFor = 60_000;

/** Maximum number of responses buffered for a slow reader. */
const maxBuffered = 16;

export function createAgentInputService(parts: AgentInputParts): ServiceImplementation<typeof AgentInputService> {
  const { db, sessions, controlHeartbeats, events, config } = parts;
  /** Browser sessions by agent session. The mapping never changes. */
  const known = new IdleMap<string, { readonly sessionId: string; readonly accountId: string }>(knownFor);

  /** Returns the identifier of the browser session of a running agent session, usually from the cache. */
  async function findSessionId(call: Call, id: string): Promise<string> {
    const { accountId } = call.principal;
    const found = known.get(id);
    const isKnown = found?.accountId === accountId && (await sessions.agentOf(call, found.sessionId)) === id;
    if (isKnown) return found.sessionId;
    const { session_id: sessionId } = await findRunning(db, call, id);
    known.set(id, { sessionId, accountId });
    return sessionId;
  }

  async function sendInput(call: Call, request: SendInputRequest) {
    const clientId = agentClientId(call, request.clientId);
    const sessionId = await findSessionId(call, request.id);
    const answer = await sessions.sendInput({ ...callerOf(call), clientId }, sessionId, request);
    // A request without events is a heartbeat.
    const isReceived = answer.accepted > 0 || answer.dropped === 0;
    if (isReceived) controlHeartbeats.note(sessionId, clientId, answer.accepted > 0);
    return answer;
  }

  /** Sends the control state at once, and after each change until the stream ends. */
  async function pumpControl(call: Call, sessionId: string, outbox: BoundedQueue<Answer>, signal: AbortSignal) {
    const { accountId } = call.principal;
    const changes = await events.watch({ accountId, subject: sessionId, signal });
    const row = await findControl(db, sessionId, accountId);
    let epoch = row?.control_epoch;
    if (row) await outbox.push({ control: toControlMessage(row) });
    for await (const { type } of changes) {
      const now = type === "session.control_changed" ? await findControl(db, sessionId, accountId) : undefined;
      if (!now || now.control_epoch === epoch) continue;
      epoch = now.control_epoch;
      await outbox.push({ control: toControlMessage(now) });
    }
  }

  async function streamInput(call: Call, first: StreamInputRequest): Promise<Conversation<StreamInputRequest, Answer>> {
    const { agentSessionId: id } = first;
    if (id === "") throw failFields("validation-failed", { agent_session_id: "is required in the first message" });
    const clientId = agentClientId(call, first.clientId);
    const sessionId = await findSessionId(call, id);
    await call.joinSession(sessionId);
    const outbox = new BoundedQueue<Answer>({ items: maxBuffered });
    let last: InputReceipt = { sequence: 0, accepted: 0, dropped: 0 };
    const sender = sessions.openInput(callerOf(call), sessionId, clientId, {
      async onReceipt(receipt) {
        const hasInput = receipt.accepted > last.accepted;
        // If nothing was accepted or dropped, the message was a heartbeat.
        if (hasInput || receipt.dropped === last.dropped) controlHeartbeats.note(sessionId, clientId, hasInput);
        last = receipt;
        await outbox.push({ acknowledgement: receipt });
      },
      async onFailed(thrown) {
        await outbox.push({ error: toProblem(asFailure(thrown), config.errorsBase, call.requestId) });
      },
    });
    return {
      // biome-ignore lint/correctness/useYield: acknowledgements go to the outbox, which merges several of them.
      async *answer({ agentSessionId, events: input, controlEpoch, sequence }) {
        if (agentSessionId !== "" && agentSessionId !== id)
          throw failFields("validation-failed", {
            agent_session_id: "must be the one in the first message of the stream",
          });
        // The agent session may have ended without its browser session.
        await findSessionId(call, id);
        const epoch = controlEpoch === undefined ? {} : { controlEpoch: BigInt(controlEpoch) };
        await sender.send({ events: input, sequence, ...epoch });
      },
      async *finish() {
        await sender.drained();
        // The last acknowledgement may not have been delivered, so it is repeated.
        yield { acknowledgement: last };
      },
      async *unsolicited(signal) {
        signal.addEventListener("abort", () => outbox.end(), { once: true });
        pumpControl(call, sessionId, outbox, signal).catch((thrown: unknown) => outbox.fail(thrown));
        try {
          yield* outbox;
        } finally {
          await sender.close();
        }
      },
    };
  }

  return { sendInput, streamInput };
}
