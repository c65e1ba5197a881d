import type { JsonObject } from "@bufbuild/protobuf";
import { type Insertable, type RawBuilder, type Selectable, type SqlBool, sql, type Updateable } from "kysely";
import type { Database, NamedStatement, Queryable, Tx } from "../../platform/postgres/database.ts";
import type { AgentTurnsTable } from "./tables.ts";

export type TurnRow = Selectable<AgentTurnsTable>;

const identity =
  "id, agent_session_id, account_id, session_id, credential, model, provider, limits, vision, created_at";
const progress =
  "status, reason, steps, tokens, cost, misfits, recipe, recipe_plan, prompt_version, control_epoch, beat_at";
const timeColumns = "worked_ms, model_ms, settling_ms, waiting_ms, waiting_since, waits_until, ended_at";
const allColumns =
  `${identity}, ${progress}, ${timeColumns}, answer, error, output_schema, ordered_schema, output` as const;

type Listed<List> = List extends `${infer First}, ${infer Rest}` ? First | Listed<Rest> : List;

/** All columns. Statements with `*` are not prepared (see `HotStatements`), and planning them takes 0.1 to 0.4 ms. */
const columns = sql.raw(allColumns satisfies keyof AgentTurnsTable extends Listed<typeof allColumns> ? string : never);

/** Returns the columns that an update sets, with their values. */
const setColumns = (values: object) => Object.entries(values).filter(([, value]) => value !== undefined);

async function readTurn(on: Queryable, statement: RawBuilder<TurnRow>): Promise<TurnRow | undefined> {
  const { rows } = await statement.execute(on.sql);
  return rows[0];
}

async function returnTurn(on: Queryable, statement: RawBuilder<TurnRow>): Promise<TurnRow> {
  const turn = await readTurn(on, statement);
  if (!turn) throw new Error("expected a turn, got no row");
  return turn;
}

/** Values of a turn that has not started, equal to the defaults of the columns. */
const notBegun = {
  status: "queued" as const,
  reason: null,
  steps: 0,
  tokens: "0",
  answer: null,
  error: null,
  output: null,
  ordered_schema: null,
  worked_ms: "0",
  model_ms: "0",
  settling_ms: "0",
  waiting_ms: "0",
};

type TurnKey = "id" | "agent_session_id" | "account_id" | "session_id" | "cost";

/** A turn that has not started, without the columns that only its run needs. */
export type NewTurn = Pick<TurnRow, TurnKey | keyof typeof notBegun>;

/** Inserts a turn. The commit waits for the statement. */
export function insertTurn(
  tx: Tx,
  turn: Omit<Insertable<AgentTurnsTable>, keyof typeof notBegun> & { ordered_schema?: string | undefined },
): NewTurn {
  const { id, agent_session_id, account_id, session_id, cost = null } = turn;
  tx.send(tx.sql.insertInto("agent_turns").values({ ...turn, status: notBegun.status }));
  return { ...notBegun, id, agent_session_id, account_id, session_id, cost };
}

const selectTurns = sql`select ${columns} from agent_turns`;

/** Finds a turn, optionally only within an agent session. */
export function findTurn(db: Queryable, id: string, agentSessionId?: string): Promise<TurnRow | undefined> {
  const isOfSession = agentSessionId === undefined ? sql`` : sql` and agent_session_id = ${agentSessionId}`;
  return readTurn(db, sql`${selectTurns} where id = ${id}${isOfSession}`);
}

/** Reads the output schemas of turns, keyed by turn identifier; null if none was requested. */
export async function readSchemas(db: Queryable, ids: readonly string[]): Promise<Map<string, JsonObject | null>> {
  const rows = await db.sql.selectFrom("agent_turns").select(["id", "ordered_schema"]).where("id", "in", ids).execute();
  return new Map(rows.map(({ id, ordered_schema }) => [id, ordered_schema]));
}

/** Locks and returns the current turn of an agent session, if any: the turn that is queued, running or waiting. */
export function lockRunningTurn(tx: Tx, agentSessionId: string): Promise<TurnRow | undefined> {
  return readTurn(tx, sql`${selectTurns} where agent_session_id = ${agentSessionId} and ended_at is null for update`);
}

/** Locks and returns a turn; undefined if the turn has ended. */
export function lockTurn(tx: Tx, id: string): Promise<TurnRow | undefined> {
  return readTurn(tx, sql`${selectTurns} where id = ${id} and ended_at is null for update`);
}

export function updateTurn(tx: Tx, id: string, changes: Updateable<AgentTurnsTable>): Promise<TurnRow> {
  const set = sql.join(setColumns(changes).map(([name, value]) => sql`${sql.ref(name)} = ${value}`));
  return returnTurn(tx, sql`update agent_turns set ${set} where id = ${id} returning ${columns}`);
}

/** An encrypted message of a conversation. */
export interface SealedMessage {
  readonly agentSessionId: string;
  readonly turnId: string;
  readonly sealed: Buffer;
}

/** Adds a message for the model's next step to read. */
export function insertWaitingMessage(tx: Tx, { agentSessionId, turnId, sealed }: SealedMessage): void {
  const row = { agent_session_id: agentSessionId, turn_id: turnId, position: null, sealed };
  tx.send(tx.sql.insertInto("agent_messages").values(row));
}

const nextPosition = (agentSessionId: string) =>
  sql<number>`(select coalesce(max(position), 0) + 1 from agent_messages where agent_session_id = ${agentSessionId})`;

/** Appends a message to the conversation. */
export function insertMessage(tx: Tx, { agentSessionId, turnId, sealed }: SealedMessage): void {
  const row = { agent_session_id: agentSessionId, turn_id: turnId, position: nextPosition(agentSessionId), sealed };
  tx.send(tx.sql.insertInto("agent_messages").values(row));
}

const takeStatement: NamedStatement = {
  name: "take-waiting-messages",
  text: `update agent_messages set position = waiting.place
    + (select coalesce(max(position), 0) from agent_messages where agent_session_id = $1)
    from (select id, row_number() over (order by id) as place from agent_messages
      where agent_session_id = $1 and position is null and id <= $2) as waiting
    where agent_messages.id = waiting.id`,
};

/** Appends the waiting messages up to an identifier to the conversation, in their order. */
export function takeWaitingMessages(tx: Tx, agentSessionId: string, upTo: string): void {
  tx.sendNamed(takeStatement, [agentSessionId, upTo]);
}

/** Returns whether messages wait for the model's next step. */
export async function hasWaitingMessages(db: Queryable, agentSessionId: string): Promise<boolean> {
  const waiting = db.sql.selectFrom("agent_messages").select("id").where("agent_session_id", "=", agentSessionId);
  return (await waiting.where("position", "is", null).limit(1).executeTakeFirst()) !== undefined;
}

/**
 * Reads the messages of a conversation after a position, followed by the waiting messages. Messages are only appended,
 * so that earlier messages need not be read again.
 */
export function readMessages(db: Queryable, agentSessionId: string, after: number) {
  const messages = db.sql.selectFrom("agent_messages").select(["id", "position", "sealed"]);
  const found = messages.where("agent_session_id", "=", agentSessionId);
  return found
    .where((where) => where.or([where("position", ">", after), where("position", "is", null)]))
    .orderBy("position")
    .orderBy("id")
    .execute();
}

/** Reads the summaries of a conversation at or after a position. */
export function readSummaries(db: Queryable, agentSessionId: string, from: number) {
  const summaries = db.sql.selectFrom("agent_summaries").select(["position", "sealed"]);
  return summaries.where("agent_session_id", "=", agentSessionId).where("position", ">=", from).execute();
}

/** Stores a summary of the messages up to a position, unless one is stored already. */
export async function insertSummary(tx: Tx, summary: SealedMessage & { readonly position: number }): Promise<void> {
  const { agentSessionId, turnId, position, sealed } = summary;
  const row = { agent_session_id: agentSessionId, turn_id: turnId, position, sealed };
  const insert = tx.sql.insertInto("agent_summaries").values(row);
  await insert.onConflict((conflict) => conflict.doNothing()).execute();
}

/** Thrown if the turn has ended. */
export class TurnEnded extends Error {
  constructor() {
    super("the turn has ended");
  }
}

/**
 * Records the start of a tool call under the identifier `id`. Returns `id`, or the identifier recorded earlier if the
 * call had already started. Throws `TurnEnded` if the turn has ended.
 */
export async function beginAction(db: Queryable, turnId: string, callId: string, id: string): Promise<string> {
  const turn = sql`select ${id}, id, ${callId} from agent_turns where id = ${turnId} and ended_at is null`;
  const { rows } = await sql<{ id: string }>`insert into agent_actions (id, turn_id, call_id) ${turn}
    on conflict (turn_id, call_id) do update set call_id = excluded.call_id returning id`.execute(db.sql);
  const [begun] = rows;
  if (!begun) throw new TurnEnded();
  return begun.id;
}

/** Returns whether the action belongs to the agent session. */
export async function hasAction(db: Queryable, agentSessionId: string, id: string): Promise<boolean> {
  const action = db.sql.selectFrom("agent_actions as a").innerJoin("agent_turns as t", "t.id", "a.turn_id");
  const own = action.select("a.id").where("a.id", "=", id).where("t.agent_session_id", "=", agentSessionId);
  return (await own.executeTakeFirst()) !== undefined;
}

/** Records a heartbeat of the gateway that holds the header key of these turns. */
export async function recordTurnHeartbeats(db: Database, ids: readonly string[], at: Date): Promise<void> {
  await db.sql.updateTable("agent_turns").set({ beat_at: at }).where("id", "in", ids).execute();
}

/** Lists up to 100 turns that have not ended, although the gateway with their key sent no heartbeat since `before`. */
export async function findLostTurns(db: Database, before: Date): Promise<string[]> {
  const lost = db.sql.selectFrom("agent_turns").select("id").where("ended_at", "is", null);
  return (await lost.where("beat_at", "<", before).limit(100).execute()).map(({ id }) => id);
}

/**
 * Condition: a turn has not ended, although its last heartbeat was before `before`, or its agent session or browser
 * session has ended.
 */
export const turnsAreAbandoned = (before: Date): RawBuilder<SqlBool> => sql`(
  exists (select from agent_turns where ended_at is null and beat_at < ${before})
  or exists (
    select from agent_turns t join sessions s on s.id = t.session_id join agent_sessions a on a.id = t.agent_session_id
    where t.ended_at is null and (s.ended_at is not null or a.ended_at is not null)
  )
)`;

/**
 * Lists up to 100 turns that have not ended, although their agent session or browser session has. `ended_reason` is
 * that of the browser session; null if only the agent session has ended.
 */
export function findOrphans(db: Database) {
  return db.sql
    .selectFrom("agent_turns as t")
    .innerJoin("sessions as s", "s.id", "t.session_id")
    .innerJoin("agent_sessions as a", "a.id", "t.agent_session_id")
    .select(["t.id", "s.ended_reason"])
    .where("t.ended_at", "is", null)
    .where((where) => where.or([where("s.ended_at", "is not", null), where("a.ended_at", "is not", null)]))
    .limit(100)
    .execute();
}

const settings = ["instructions", "model", "limits", "recipe_id", "variable_names", "variables"] as const;

/** Reads the settings of an agent session that apply to all its turns. */
export async function readAgent(db: Queryable, agentSessionId: string) {
  const row = db.sql.selectFrom("agent_sessions").select(settings).where("id", "=", agentSessionId);
  return row.executeTakeFirstOrThrow();
}

/** Reads the settings of a turn's agent session, and the entitlement of its account. Undefined if there is no turn. */
export async function readAgentOfTurn(db: Queryable, turnId: string) {
  const turn = db.sql.selectFrom("agent_turns as t").where("t.id", "=", turnId);
  const joined = turn
    .innerJoin("agent_sessions as a", "a.id", "t.agent_session_id")
    .innerJoin("accounts as c", "c.id", "t.account_id");
  const columns = [
    "a.instructions",
    "a.recipe_id",
    "a.variable_names",
    "a.variables",
    "c.tier",
    "c.overrides",
  ] as const;
  return joined.select(columns).executeTakeFirst();
}
