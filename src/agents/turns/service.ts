import { create, type JsonObject } from "@bufbuild/protobuf";
import { addEntry, readTranscriptEntries } from "../../events/transcript.ts";
import { HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import {
  type AgentTurnService,
  type GetTranscriptRequest,
  GetTranscriptResponseSchema,
  type GetTurnRequest,
  type SendAgentMessageRequest,
  type TranscriptEntry,
  TranscriptRole,
  type Turn,
} from "../../gen/pilothouse/v1/agent_turn_pb.ts";
import type { Call } from "../../kernel/call.ts";
import type { ServiceImplementation } from "../../kernel/registry.ts";
import { sleep } from "../../platform/bounded-wait.ts";
import { type Failure, fail, failFields } from "../../platform/errors.ts";
import { IdleMap } from "../../platform/idle-map.ts";
import { idPattern } from "../../platform/ids.ts";
import { cutPage, readCursor } from "../../platform/list-page.ts";
import type { Database, Tx } from "../../platform/postgres/database.ts";
import { callerOf } from "../../sessions/commands/session-caller.ts";
import { lockControl } from "../../sessions/control/store.ts";
import type { Sessions } from "../../sessions/sessions.ts";
import type { PayerParts } from "../llm/payer.ts";
import { findAny, findRunning } from "../sessions/agent-sessions.ts";
import type { AgentSessionRow } from "../sessions/store.ts";
import type { AgentTurns } from "./agent-turns.ts";
import { sealMessage } from "./model-messages.ts";
import { inSchemaOrder } from "./output-order.ts";
import {
  findTurn,
  hasAction,
  insertTurn,
  insertWaitingMessage,
  lockRunningTurn,
  lockTurn,
  type NewTurn,
  readSchemas,
  type TurnRow,
  updateTurn,
} from "./store.ts";
import { choosePayerColumns, limitsOf } from "./turn-columns.ts";
import { endLockedTurn, entryOf, ownerOf, type TurnEndParts } from "./turn-end.ts";
import { toTurnMessage } from "./turn-message.ts";

export interface TurnServiceParts extends TurnEndParts, PayerParts {
  readonly turns: AgentTurns;
  readonly sessions: Sessions;
  readonly config: TurnEndParts["config"] & PayerParts["config"];
}

const defaultPage = 20;

const entryId = idPattern("evt");

/** Milliseconds that a gateway caches the agent session of a turn after its last use. */
const rememberMs = 60_000;

/** Milliseconds between checks of a turn by waiting calls, in case a notification was lost. */
const pollEvery = 500;

const noTurn = (): Failure => fail("not-found", {}, { detail: "the agent session has no turn with this id" });

/** Throws `validation-failed` if results cannot be validated against a schema. Loads the validator only when needed. */
async function assertSchema(schema: JsonObject): Promise<void> {
  const { findSchemaFault } = await import("./output-schema.ts");
  const fault = findSchemaFault(schema);
  if (fault !== undefined) throw failFields("validation-failed", { output_schema: fault });
}

/** Returns the entries with the keys of each result in the order of the requested schema. */
async function withOrderedOutputs(db: Database, entries: readonly TranscriptEntry[]): Promise<TranscriptEntry[]> {
  const ids = entries.flatMap(({ turnId, content: { case: kind, value } }) =>
    kind === "text" && value.output && turnId !== undefined ? [turnId] : [],
  );
  const schemas = ids.length > 0 ? await readSchemas(db, ids) : new Map<string, JsonObject>();
  return entries.map((entry) => {
    const { turnId = "", content } = entry;
    const schema = schemas.get(turnId);
    if (!schema || content.case !== "text" || !content.value.output) return entry;
    const value = { ...content.value, output: inSchemaOrder(schema, content.value.output) };
    return { ...entry, content: { case: "text", value } };
  });
}

export function createTurnService(parts: TurnServiceParts): ServiceImplementation<typeof AgentTurnService> {
  const { db, clock, ids, sealer, events, bus, turns, sessions } = parts;
  /** Agent sessions of recent turns, for columns that never change. */
  const recent = new IdleMap<string, AgentSessionRow>(rememberMs, { clock });

  /**
   * Waits until `isOver` returns true for a turn, the time is up, or the signal aborts. Returns the latest state of the
   * turn.
   */
  async function follow(
    turn: Turn,
    milliseconds: number,
    signal: AbortSignal,
    isOver: (row: TurnRow) => boolean = ({ ended_at }) => ended_at !== null,
  ): Promise<Turn> {
    const deadline = performance.now() + milliseconds;
    for (;;) {
      const changed = new AbortController();
      const unsubscribe = bus.subscribe("turn-changed", (id) => id === turn.turnId && changed.abort());
      try {
        const row = await findTurn(db, turn.turnId);
        const left = deadline - performance.now();
        if (!row || isOver(row) || left <= 0 || signal.aborted) return row ? toTurnMessage(row) : turn;
        await sleep(Math.min(left, pollEvery), AbortSignal.any([signal, changed.signal]));
      } finally {
        unsubscribe();
      }
    }
  }

  async function addUserMessage(tx: Tx, turn: NewTurn | TurnRow, text: string): Promise<void> {
    const sealed = sealMessage(sealer, turn.account_id, { role: "user", content: text });
    insertWaitingMessage(tx, { agentSessionId: turn.agent_session_id, turnId: turn.id, sealed });
    const content = { case: "text" as const, value: { text } };
    const entry = { id: ids.next("evt"), ...entryOf(turn), role: TranscriptRole.USER, content };
    await addEntry(tx, events, ownerOf(turn), entry, new Date(clock.now()));
  }

  async function sendMessage(
    call: Call,
    { id, text, waitMs = 0, outputSchema }: SendAgentMessageRequest,
  ): Promise<Turn> {
    const { accountId } = call.principal;
    const header = call.header("x-byok-llm-api-key");
    const turnId = call.ids.next("trn");
    // The page of a known agent session is observed while its row is read.
    const known = recent.get(id);
    const isKnown = known?.account_id === accountId;
    if (isKnown) turns.observeAhead(turnId, known, call.principal);
    const agent = await findRunning(db, call, id);
    if (outputSchema) await assertSchema(outputSchema);
    if (!isKnown && agent.turn_id === null) turns.observeAhead(turnId, agent, call.principal);
    const turn = await call.commit(async (tx) => {
      // The lock makes the second of two concurrent messages join the turn of the first message.
      const lock = lockControl(tx, agent.session_id, accountId);
      const chosen = choosePayerColumns(tx, parts, agent, { accountId, header });
      // If the message joins a turn that has a payer, `chosen` is not awaited and its failure is ignored.
      chosen.catch(() => undefined);
      const [running] = await Promise.all([lockRunningTurn(tx, id), lock]);
      if (running) {
        if (header !== undefined || outputSchema) {
          const what = header === undefined ? "output_schema" : "the header x-byok-llm-api-key";
          const detail = `a turn is running: wait until it has ended, or leave ${what} out`;
          throw fail("conflict", { running_turn_id: running.id }, { detail });
        }
        // A turn that runs a recipe without a model needs a model to answer the message.
        if (running.credential === "none") await updateTurn(tx, running.id, await chosen);
        await addUserMessage(tx, running, text);
        return toTurnMessage(running);
      }
      const payer = await chosen;
      const now = new Date(clock.now());
      const row = insertTurn(tx, {
        id: turnId,
        agent_session_id: id,
        account_id: accountId,
        session_id: agent.session_id,
        ...payer,
        limits: limitsOf(agent),
        created_at: now,
        beat_at: header === undefined ? null : now,
        output_schema: outputSchema && JSON.stringify(outputSchema),
        ordered_schema: outputSchema && JSON.stringify(outputSchema),
      });
      await addUserMessage(tx, row, text);
      turns.begin(tx, row, header);
      tx.afterCommit(() => bus.publish("session-changed", agent.session_id));
      return toTurnMessage(row);
    });
    if (turn.turnId === turnId) recent.set(id, agent);
    else recent.delete(id);
    return waitMs === 0 ? turn : follow(turn, waitMs, call.signal);
  }

  async function getTurn(call: Call, { id, turnId, waitMs = 0 }: GetTurnRequest): Promise<Turn> {
    await findAny(db, call, id);
    const row = await findTurn(db, turnId, id);
    if (!row) throw noTurn();
    const turn = toTurnMessage(row);
    if (waitMs === 0) return turn;
    return follow(turn, waitMs, call.signal, (now) => now.ended_at !== null || now.status === "waiting_for_person");
  }

  async function readTranscript(call: Call, { id, limit = defaultPage, cursor }: GetTranscriptRequest) {
    await findAny(db, call, id);
    const after = readCursor(cursor, entryId);
    const { rows, position } = cutPage(
      await readTranscriptEntries(db, { agentSessionId: id, after, limit: limit + 1 }),
      limit,
    );
    return create(GetTranscriptResponseSchema, { data: await withOrderedOutputs(db, rows), ...position });
  }

  return {
    sendMessage,
    getTurn,
    async cancelTurn(call, { id, turnId }) {
      await findRunning(db, call, id);
      const turn = await findTurn(db, turnId, id);
      if (!turn) throw noTurn();
      return call.commit(async (tx) => {
        const running = await lockTurn(tx, turnId);
        const end = { status: "cancelled", reason: "cancelled" } as const;
        return toTurnMessage(running ? await endLockedTurn(parts, tx, running, end) : turn);
      });
    },
    getTranscript: readTranscript,
    async getStepScreenshot(call, { id, stepId }) {
      const agent = await findAny(db, call, id);
      const isKnown = await hasAction(db, id, stepId);
      const data = isKnown ? await sessions.stepPicture(callerOf(call), agent.session_id, stepId) : undefined;
      if (!data) throw fail("not-found", {}, { detail: "no screenshot is stored for a step with this id" });
      return create(HttpBodySchema, { contentType: "image/jpeg", data });
    },
  };
}
