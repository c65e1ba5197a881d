import type { Selectable } from "kysely";
import type { NamedStatement, Queryable, Tx } from "../../platform/postgres/database.ts";
import type { SessionsTable } from "../tables.ts";

/** What a session's row says of who steers it. */
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

/** Reads who steers a session of an account. */
export async function findControl(db: Queryable, id: string, accountId: string): Promise<ControlRow | undefined> {
  const row = db.sql.selectFrom("sessions").select(columns).where("id", "=", id).where("account_id", "=", accountId);
  return row.executeTakeFirst();
}

/** The same, and keeps others from changing it until the transaction ends. */
export async function lockControl(tx: Tx, id: string, accountId: string): Promise<ControlRow | undefined> {
  const row = tx.sql.selectFrom("sessions").select(columns).where("id", "=", id).where("account_id", "=", accountId);
  return row.forUpdate().executeTakeFirst();
}

/** How many sessions are taken back in one transaction; the next look takes those that are left. */
const sweptAtOnce = 100;

/** Locks sessions whose control has lapsed. Those that another gateway looks at are left to it. */
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

/** Who steers from now on. */
export interface NewControl {
  readonly holder: string | null;
  readonly epoch: bigint;
  readonly lapsesAt: Date | null;
  readonly inputAt: Date | null;
}

/** Writes who steers a session that is locked. */
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

/** When a person who holds control was heard. */
export interface SignOfLife {
  readonly sessionId: string;
  readonly clientId: string;
  readonly heardAt: Date;
  /** When input last came; null when none has since the last renewal. */
  readonly inputAt: Date | null;
}

/** Renews control, if the client holds it; it lapses so many milliseconds after the sign, and after the last input. */
export async function renewControl(db: Queryable, sign: SignOfLife, lapse: { sign: number; input: number }) {
  const { sessionId, clientId, heardAt, inputAt } = sign;
  await db.named(renewStatement, [sessionId, clientId, heardAt, inputAt, lapse.sign, lapse.input]);
}
