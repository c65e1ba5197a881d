import { sql } from "kysely";
import type { Queryable, Tx } from "../../platform/postgres/database.ts";
import type { StoredSessionStatus } from "../../sessions/session-states.ts";
import type { StoredAgentMode, StoredTurnLimits } from "./tables.ts";

export interface NewAgentSession {
  readonly id: string;
  readonly accountId: string;
  readonly sessionId: string;
  readonly ownsSession: boolean;
  readonly mode: StoredAgentMode;
  readonly instructions: string | undefined;
  readonly model: string | undefined;
  readonly recipeId: string | undefined;
  readonly limits: Partial<StoredTurnLimits> | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly allowedDomains: readonly string[];
  readonly variableNames: readonly string[];
  readonly variables: Buffer | null;
}

/** Inserts an agent session, and links its browser session to it. */
export async function insertAgentSession(tx: Tx, session: NewAgentSession): Promise<AgentSessionRow> {
  const { id, accountId, sessionId } = session;
  await tx.sql
    .insertInto("agent_sessions")
    .values({
      id,
      account_id: accountId,
      session_id: sessionId,
      owns_session: session.ownsSession,
      mode: session.mode,
      instructions: session.instructions ?? null,
      model: session.model ?? null,
      recipe_id: session.recipeId ?? null,
      limits: session.limits ? JSON.stringify(session.limits) : null,
      labels: JSON.stringify(session.labels),
      allowed_domains: JSON.stringify(session.allowedDomains),
      variable_names: JSON.stringify(session.variableNames),
      variables: session.variables,
      created_at: sql<Date>`date_trunc('milliseconds', app_now())`,
    })
    .execute();
  await tx.sql.updateTable("sessions").set({ agent_session_id: id }).where("id", "=", sessionId).execute();
  return select(tx).where("a.id", "=", id).executeTakeFirstOrThrow();
}

const joined = (db: Queryable) =>
  db.sql.selectFrom("agent_sessions as a").innerJoin("sessions as s", "s.id", "a.session_id");

/** Agent sessions joined with their browser sessions. */
function select(db: Queryable) {
  return joined(db).select([
    ...([
      "a.id",
      "a.account_id",
      "a.session_id",
      "a.owns_session",
      "a.mode",
      "a.instructions",
      "a.model",
      "a.recipe_id",
      "a.limits",
      "a.allowed_domains",
      "a.variable_names",
    ] as const),
    ...([
      "a.labels",
      "a.created_at",
      "a.ended_at",
      "s.archetype",
      "s.profile_id",
      "s.expires_at",
      "s.live_at",
    ] as const),
    ...(["s.status", "s.ended_reason", "s.control_holder", "s.control_epoch", "s.control_lapses_at"] as const),
    ...(["s.agent_session_id", "s.ended_at as session_ended_at"] as const),
    sql<string | null>`(select id from agent_turns where agent_session_id = a.id and ended_at is null)`.as("turn_id"),
  ]);
}

export type AgentSessionRow = Awaited<ReturnType<ReturnType<typeof select>["executeTakeFirstOrThrow"]>>;

export async function findAgentSession(
  db: Queryable,
  id: string,
  accountId: string,
): Promise<AgentSessionRow | undefined> {
  return select(db).where("a.id", "=", id).where("a.account_id", "=", accountId).executeTakeFirst();
}

export interface AgentSessionListQuery {
  readonly accountId: string;
  readonly status: StoredSessionStatus | undefined;
  /** An agent session must have all of these labels. */
  readonly labels: Readonly<Record<string, string>>;
  /** Identifier of an agent session. Only older agent sessions are returned. */
  readonly before: string | undefined;
  readonly limit: number;
}

/** Lists agent sessions, newest first. */
export async function listAgentSessions(db: Queryable, query: AgentSessionListQuery): Promise<AgentSessionRow[]> {
  let rows = select(db).where("a.account_id", "=", query.accountId);
  const status = sql<StoredSessionStatus>`case when a.ended_at is null then s.status else 'destroyed' end`;
  if (query.status !== undefined) rows = rows.where(status, "=", query.status);
  if (Object.keys(query.labels).length > 0)
    rows = rows.where(sql<boolean>`a.labels @> ${JSON.stringify(query.labels)}::jsonb`);
  if (query.before !== undefined) rows = rows.where("a.id", "<", query.before);
  return rows.orderBy("a.id", "desc").limit(query.limit).execute();
}

export async function writeMode(tx: Tx, id: string, mode: StoredAgentMode): Promise<void> {
  await tx.sql.updateTable("agent_sessions").set({ mode }).where("id", "=", id).execute();
}

/** Deletes the variables of ended agent sessions. */
export async function clearEndedVariables(db: Queryable): Promise<void> {
  await sql`update agent_sessions a set variables = null from sessions s
    where a.variables is not null and s.id = a.session_id and (a.ended_at is not null or s.ended_at is not null)`.execute(
    db.sql,
  );
}

/** Ends an agent session without ending its browser session. */
export async function endAgentSession(tx: Tx, { id, session_id }: AgentSessionRow, at: Date): Promise<void> {
  await tx.sql.updateTable("agent_sessions").set({ ended_at: at }).where("id", "=", id).execute();
  await tx.sql.updateTable("sessions").set({ agent_session_id: null }).where("id", "=", session_id).execute();
}
