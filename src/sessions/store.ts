import { type RawBuilder, type Selectable, type SqlBool, sql } from "kysely";
import type { StoredLogLevel } from "../accounts/settings.ts";
import { recentlyLost } from "../fleet/store.ts";
import type { NamedStatement, Queryable, Tx } from "../platform/postgres/database.ts";
import {
  runningStatuses,
  type SessionTrigger,
  type StoredEndedReason,
  type StoredSessionStatus,
  transitions,
} from "./session-states.ts";
import type { SessionsTable, StoredOptions } from "./tables.ts";

export type SessionRow = Selectable<SessionsTable>;

/** A specific placement of a session. */
export interface PlacedSession {
  readonly id: string;
  readonly placementEpoch: bigint;
}

export interface NewSession {
  readonly id: string;
  readonly accountId: string;
  readonly archetype: string;
  readonly runtime: string;
  readonly profileId: string | undefined;
  readonly locale: string | undefined;
  readonly timezone: string | undefined;
  readonly viewport: { readonly width: number; readonly height: number; readonly deviceScaleFactor: number };
  readonly labels: Readonly<Record<string, string>>;
  readonly options: StoredOptions;
  readonly idleTimeoutSeconds: number;
  readonly timeoutSeconds: number;
  readonly tier: string;
  readonly workerId: string;
  readonly connectName?: string | undefined;
  readonly logs: StoredLogLevel;
  /** User or key that creates the session. */
  readonly createdBy?: string | undefined;
  /** Proxy of the pages, without its password, which is not stored. */
  readonly proxy?: { readonly server: string; readonly username?: string | undefined } | undefined;
}

/** Columns that a transition sets besides the status. */
type SessionPatch = Partial<Pick<SessionRow, "pause_reason" | "ended_reason">> & {
  live_at?: ReturnType<typeof rightNow>;
  ended_at?: ReturnType<typeof rightNow>;
};

/** Conditions of a transition besides the status. */
interface SessionCondition {
  readonly accountId?: string;
  readonly placementEpoch?: bigint;
}

/**
 * Milliseconds after which a session that is still provisioning is ended. Both attempts of a launch together are
 * shorter.
 */
export const provisionWithin = 90_000;

/** Milliseconds after expiry until the service ends a session that its worker has not ended. */
const expiredFor = 10_000;

/** Time of the statement. The transaction may have started earlier, and then waited for a lock. */
const rightNow = () => sql<Date>`date_trunc('milliseconds', app_now())`;
const fromNow = (ms: number) => sql<Date>`date_trunc('milliseconds', app_now()) + ${ms} * interval '1 millisecond'`;

/** Counts the sessions of an account that have not ended, and the browsers in which its fetches run. */
export async function countRunning(tx: Tx, accountId: string): Promise<number> {
  const fetching = sql`select count(distinct browser_id)::int from fetches
    where account_id = ${accountId} and lapses_at > app_now()`;
  const { count } = await tx.sql
    .selectFrom("sessions")
    .select(sql<number>`count(*)::int + (${fetching})`.as("count"))
    .where("account_id", "=", accountId)
    .where("status", "in", runningStatuses)
    .executeTakeFirstOrThrow();
  return count;
}

/** Inserts a session that is being launched, and takes a slot of its worker. */
export async function insertSession(tx: Tx, session: NewSession): Promise<SessionRow> {
  return tx.sql
    .insertInto("sessions")
    .values({
      id: session.id,
      account_id: session.accountId,
      tier: session.tier,
      status: "provisioning",
      archetype: session.archetype,
      runtime: session.runtime,
      profile_id: session.profileId ?? null,
      locale: session.locale ?? null,
      timezone: session.timezone ?? null,
      viewport_width: session.viewport.width,
      viewport_height: session.viewport.height,
      viewport_scale: session.viewport.deviceScaleFactor,
      labels: JSON.stringify(session.labels),
      options: JSON.stringify(session.options),
      idle_timeout_seconds: session.idleTimeoutSeconds,
      created_at: rightNow(),
      expires_at: fromNow(session.timeoutSeconds * 1_000),
      provision_by: fromNow(provisionWithin),
      worker_id: session.workerId,
      proxy_server: session.proxy?.server ?? null,
      proxy_username: session.proxy?.username ?? null,
      connect_name: session.connectName ?? null,
      logs: session.logs,
      made_by: session.createdBy ?? null,
      placement_epoch: 1,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Changes of a client to a running session. */
export interface SessionChanges {
  readonly timeoutSeconds?: number | undefined;
  readonly idleTimeoutSeconds?: number | undefined;
  readonly labels?: Readonly<Record<string, string>>;
}

/** Changes a locked session. Returns the session with the milliseconds until it expires. */
export async function updateSession(
  tx: Tx,
  id: string,
  { timeoutSeconds, idleTimeoutSeconds, labels }: SessionChanges,
): Promise<SessionRow & { readonly remainingMs: number }> {
  return tx.sql
    .updateTable("sessions")
    .set({
      ...(timeoutSeconds !== undefined && {
        expires_at: sql<Date>`live_at + ${timeoutSeconds} * interval '1 second'`,
      }),
      ...(idleTimeoutSeconds !== undefined && { idle_timeout_seconds: idleTimeoutSeconds }),
      ...(labels && { labels: JSON.stringify(labels) }),
      timeouts_number: sql<number>`timeouts_number + 1`,
    })
    .where("id", "=", id)
    .returningAll()
    .returning(sql<number>`ceil(extract(epoch from expires_at - app_now()) * 1000)::float`.as("remainingMs"))
    .executeTakeFirstOrThrow();
}

/**
 * Places a session that is being launched on a worker again, with the next placement epoch. Returns undefined if the
 * session is no longer being launched or was moved meanwhile.
 */
export async function moveSession(tx: Tx, { id, placementEpoch }: PlacedSession, workerId: string) {
  return tx.sql
    .updateTable("sessions")
    .set({ worker_id: workerId, placement_epoch: String(placementEpoch + 1n), provision_by: fromNow(provisionWithin) })
    .where("id", "=", id)
    .where("status", "=", "provisioning")
    .where("placement_epoch", "=", String(placementEpoch))
    .returningAll()
    .executeTakeFirst();
}

/** Changes the status of a session. Returns undefined if its status or a condition does not allow the transition. */
export async function transition(
  tx: Tx,
  id: string,
  trigger: SessionTrigger,
  patch: SessionPatch,
  condition: SessionCondition = {},
): Promise<SessionRow | undefined> {
  const { from, to } = transitions[trigger];
  let update = tx.sql
    .updateTable("sessions")
    .set({ ...patch, status: to })
    .where("id", "=", id)
    .where("status", "in", from);
  if (condition.accountId !== undefined) update = update.where("account_id", "=", condition.accountId);
  if (condition.placementEpoch !== undefined) {
    update = update.where("placement_epoch", "=", String(condition.placementEpoch));
  }
  return update.returningAll().executeTakeFirst();
}

/** Changes the status of the sessions that allow the transition, and returns these sessions. */
export async function transitionAll(
  tx: Tx,
  ids: readonly string[],
  trigger: SessionTrigger,
  patch: SessionPatch,
): Promise<SessionRow[]> {
  const { from, to } = transitions[trigger];
  return tx.sql
    .updateTable("sessions")
    .set({ ...patch, status: to })
    .where("id", "in", ids)
    .where("status", "in", from)
    .returningAll()
    .execute();
}

/** Columns set when a session becomes live. */
export const livePatch = () => ({ live_at: rightNow() });

/**
 * Last heartbeat of a session's worker. Used as the end time of a session on a lost worker, because the actual end time
 * is unknown.
 */
const lastHeartbeat = sql<Date | null>`(select heard_at from worker_leases where worker_leases.worker_id = sessions.worker_id)`;

/** Columns set for a session that ended `agoMs` milliseconds ago, or for `worker_lost` at the last heartbeat. */
export const endedPatch = (reason: StoredEndedReason, agoMs: number) => ({
  ended_at: sql<Date>`greatest(coalesce(live_at, created_at),
    ${reason === "worker_lost" ? sql`least(${lastHeartbeat}, ${rightNow()})` : fromNow(-agoMs)})`,
  ended_reason: reason,
  pause_reason: null,
});

/**
 * Selects running sessions to end: by worker, by identifier, on lost workers (orphaned), not live in time (unready), or
 * expired.
 */
export type RunningSessions =
  | { readonly workerId: string }
  | { readonly ids: readonly string[] }
  | "orphaned"
  | "unready"
  | "expired";

/** Conditions for running sessions past a deadline. */
const isOverdue = {
  unready: sql<SqlBool>`status = 'provisioning' and provision_by < ${rightNow()}`,
  expired: sql<SqlBool>`expires_at < ${fromNow(-expiredFor)} and live_at is not null`,
};

/** Condition: there are running sessions past a deadline. Literal statuses, so that generic plans use the indexes. */
export const overdueExist: RawBuilder<SqlBool> = sql`(
  exists (select from sessions where ${isOverdue.unready})
  or exists (select from sessions where status in (${sql.join(runningStatuses.map(sql.lit))}) and ${isOverdue.expired})
)`;

/**
 * Lists and locks running sessions. The query by worker, for a registration, waits for locked rows. Sweeps and
 * heartbeats skip locked rows, because they run again and must not be delayed.
 */
export async function lockRunning(tx: Tx, which: RunningSessions): Promise<string[]> {
  const running = tx.sql.selectFrom("sessions").select("id").where("status", "in", runningStatuses);
  if (typeof which === "object" && "workerId" in which) {
    const rows = await running.where("worker_id", "=", which.workerId).orderBy("id").forUpdate().execute();
    return rows.map(({ id }) => id);
  }
  const choose = () => {
    if (which === "orphaned") return running.where("worker_id", "in", recentlyLost(tx));
    if (which === "unready" || which === "expired") return running.where(isOverdue[which]);
    return running.where("id", "in", which.ids);
  };
  const rows = await choose().orderBy("id").forUpdate().skipLocked().execute();
  return rows.map(({ id }) => id);
}

/** Locks a session and returns its row. */
export async function lockSession(tx: Tx, id: string): Promise<SessionRow | undefined> {
  return tx.sql.selectFrom("sessions").selectAll().where("id", "=", id).forUpdate().executeTakeFirst();
}

/** Finds the running sessions of a worker with their placement epochs. */
export async function findRunningOf(db: Queryable, workerId: string) {
  return db.sql
    .selectFrom("sessions")
    .select(["id", "placement_epoch", "status"])
    .where("worker_id", "=", workerId)
    .where("status", "in", runningStatuses)
    .execute();
}

export async function findSession(db: Queryable, id: string, accountId: string): Promise<SessionRow | undefined> {
  return db.sql
    .selectFrom("sessions")
    .selectAll()
    .where("id", "=", id)
    .where("account_id", "=", accountId)
    .executeTakeFirst();
}

/** Finds the identifier of the running session that a connecting client of the account named. */
export async function findNamed(db: Queryable, accountId: string, name: string): Promise<string | undefined> {
  const row = await db.sql
    .selectFrom("sessions")
    .select("id")
    .where("account_id", "=", accountId)
    .where("connect_name", "=", name)
    .where("status", "in", runningStatuses)
    .executeTakeFirst();
  return row?.id;
}

export interface SessionListQuery {
  readonly accountId: string;
  readonly status: StoredSessionStatus | undefined;
  /** A session must have all of these labels. */
  readonly labels: Readonly<Record<string, string>>;
  /** Identifier of a session. Only older sessions are returned. */
  readonly before: string | undefined;
  readonly limit: number;
}

/** Lists sessions, newest first. */
export async function listSessions(db: Queryable, query: SessionListQuery): Promise<SessionRow[]> {
  let select = db.sql.selectFrom("sessions").selectAll().where("account_id", "=", query.accountId);
  if (query.status !== undefined) select = select.where("status", "=", query.status);
  if (Object.keys(query.labels).length > 0)
    select = select.where(sql<boolean>`labels @> ${JSON.stringify(query.labels)}::jsonb`);
  if (query.before !== undefined) select = select.where("id", "<", query.before);
  return select.orderBy("id", "desc").limit(query.limit).execute();
}

/** Columns of a session and its worker that commands need. */
export interface RouteRow {
  readonly id: string;
  readonly account_id: string;
  readonly status: StoredSessionStatus;
  readonly live_at: Date | null;
  readonly ended_at: Date | null;
  readonly ended_reason: StoredEndedReason | null;
  readonly worker_id: string;
  readonly placement_epoch: string;
  readonly control_epoch: string;
  readonly control_holder: string | null;
  readonly agent_session_id: string | null;
  /** The running turn of the session's agent. */
  readonly running_turn_id: string | null;
  readonly address: string;
  readonly secret_hash: Buffer;
}

const routeStatement: NamedStatement = {
  name: "session-route",
  text: `select s.id, s.account_id, s.status, s.live_at, s.ended_at, s.ended_reason, s.worker_id, s.placement_epoch,
      s.control_epoch, s.control_holder, s.agent_session_id, w.address, w.secret_hash,
      (select t.id from agent_turns t where t.agent_session_id = s.agent_session_id and t.ended_at is null) as running_turn_id
    from sessions s join workers w on w.id = s.worker_id where s.id = $1`,
};

export async function findRoute(db: Queryable, id: string): Promise<RouteRow | undefined> {
  const [row] = await db.named<RouteRow>(routeStatement, [id]);
  return row;
}
