import { type RawBuilder, type Selectable, type SqlBool, sql } from "kysely";
import type { NamedStatement, Queryable, Tx } from "../../platform/postgres/database.ts";
import type { SessionsTable } from "../tables.ts";

export type ControlRow = Pick<
  Selectable<SessionsTable>,
  | "id"
  | "account_id"
  | "status"
  | "live_at"
  | "ended_at"
  | "ended_reason"
  | "runtime"
  | "agent_session_id"
  | "control_holder"
  | "control_epoch"
  | "control_lapses_at"
>;

const columns = [
  ...(["id", "account_id", "status", "live_at", "ended_at", "ended_reason", "runtime"] as const),
  ...(["agent_session_id", "control_holder", "control_epoch", "control_lapses_at"] as const),
];

export async function findControl(db: Queryable, id: string, accountId: string): Promise<ControlRow | undefined> {
  const row = db.sql.selectFrom("sessions").select(columns).where("id", "=", id).where("account_id", "=", accountId);
  return row.executeTakeFirst();
}

export async function lockControl(tx: Tx, id: string, accountId: string): Promise<ControlRow | undefined> {
  const row = tx.sql.selectFrom("sessions").select(columns).where("id", "=", id).where("account_id", "=", accountId);
  return row.forUpdate().executeTakeFirst();
}

/** Maximum sessions released in one transaction; the next sweep handles the rest. */
const sweptAtOnce = 100;

/** Condition: control of a session has expired. Literal statuses, so that generic plans use the index. */
export const controlHasLapsed = (now: Date): RawBuilder<SqlBool> => sql`exists (
  select from sessions
  where control_holder is not null and control_lapses_at <= ${now} and status in ('live', 'paused')
)`;

/** Locks sessions with expired control, skipping rows locked by another gateway. */
export async function lockLapsed(tx: Tx, now: Date): Promise<ControlRow[]> {
  return tx.sql
    .selectFrom("sessions")
    .select(columns)
    .where("control_holder", "is not", null)
    .where("control_lapses_at", "<=", now)
    .where("status", "in", ["live", "paused"])
    .orderBy("control_lapses_at")
    .limit(sweptAtOnce)
    .forUpdate()
    .skipLocked()
    .execute();
}

export interface NewControl {
  readonly holder: string | null;
  readonly epoch: bigint;
  readonly lapsesAt: Date | null;
  readonly inputAt: Date | null;
}

/** Writes the control state of a locked session. */
export async function writeControl(tx: Tx, id: string, control: NewControl): Promise<ControlRow> {
  return tx.sql
    .updateTable("sessions")
    .set({
      control_holder: control.holder,
      control_epoch: control.epoch,
      control_lapses_at: control.lapsesAt,
      control_input_at: control.inputAt,
    })
    .where("id", "=", id)
    .returning(columns)
    .executeTakeFirstOrThrow();
}

const renewStatement: NamedStatement = {
  name: "control-renew",
  text: `update sessions set
      control_input_at = greatest(control_input_at, $4::timestamptz),
      control_lapses_at = least($3::timestamptz + $5 * interval '1 millisecond',
        greatest(control_input_at, $4::timestamptz) + $6 * interval '1 millisecond')
    where id = $1 and control_holder = $2`,
};

/** A heartbeat of the control holder. */
export interface ControlHeartbeat {
  readonly sessionId: string;
  readonly clientId: string;
  readonly heartbeatAt: Date;
  /** Time of the last input; null if there was none since the last renewal. */
  readonly inputAt: Date | null;
}

/**
 * Renews control if the client holds it. Control expires `lapse.heartbeat` milliseconds after the heartbeat or
 * `lapse.input` milliseconds after the last input, whichever is earlier.
 */
export async function renewControl(
  db: Queryable,
  heartbeat: ControlHeartbeat,
  lapse: { heartbeat: number; input: number },
) {
  const { sessionId, clientId, heartbeatAt, inputAt } = heartbeat;
  await db.named(renewStatement, [sessionId, clientId, heartbeatAt, inputAt, lapse.heartbeat, lapse.input]);
}
