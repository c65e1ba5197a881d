import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { listManagers } from "../accounts/memberships.ts";
import { findAccount } from "../accounts/store.ts";
import type { EventLog } from "../events/event-log.ts";
import { QuotaExceededEventSchema, QuotaWarningEventSchema } from "../gen/pilothouse/v1/limits_pb.ts";
import { mailTo } from "../mail/mail.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { Tx } from "../platform/postgres/database.ts";
import type { Month } from "./month.ts";
import { noteThreshold } from "./store.ts";
import { toTierMessage } from "./tier-message.ts";

/** The thresholds of every quota, in percent, with the events that tell of them. */
const thresholds = [
  { percent: 80, schema: QuotaWarningEventSchema },
  { percent: 100, schema: QuotaExceededEventSchema },
] as const;

/** The amounts of a quota at which something is told. */
export const amountsToldOf = (limit: number): number[] => thresholds.map(({ percent }) => (limit * percent) / 100);

/** How much of a quota an account has used, in the quota's own unit. */
export interface QuotaState {
  readonly accountId: string;
  readonly tier: string;
  readonly quota: "session_minutes" | "profile_storage_bytes";
  readonly used: number;
  /** What it had used before: only thresholds that were crossed since are told of. Without it all that are reached. */
  readonly before?: number;
  readonly limit: number;
  /** The month in which each threshold is told of once. */
  readonly month: Month;
  /** The quota starts anew with the month. */
  readonly isMonthly: boolean;
}

/** Whom thresholds are told to: the event log, and people. */
export interface QuotaNewsParts {
  readonly events: EventLog;
  readonly mailer: Mailer;
}

const quotaNames: Readonly<Record<QuotaState["quota"], string>> = {
  session_minutes: "session minutes of this month",
  profile_storage_bytes: "storage of profiles",
};

/** Tells the owners and admins of an account, as far as they want to know. */
async function mailManagers(mailer: Mailer, tx: Tx, { accountId, quota }: QuotaState, percent: number): Promise<void> {
  const { name: accountName } = await findAccount(tx, accountId);
  const subject = percent < 100 ? "A quota is almost used up" : "A quota is used up";
  const lines = [`The account ${accountName} has used ${percent} % of its ${quotaNames[quota]}.`];
  for (const manager of await listManagers(tx, accountId))
    await mailer.send(tx, mailTo(manager, { kind: "usage_alerts", subject, lines }));
}

/** Tells of the thresholds that an account has reached: each once in a month, for each limit. */
export async function tellThresholds({ events, mailer }: QuotaNewsParts, tx: Tx, state: QuotaState): Promise<void> {
  const { accountId, quota, month, limit, used, before = Number.NEGATIVE_INFINITY } = state;
  if (!Number.isFinite(limit)) return;
  for (const { percent, schema } of thresholds) {
    const threshold = (limit * percent) / 100;
    if (used < threshold || before >= threshold) continue;
    if (!(await noteThreshold(tx, { accountId, quota, month, percent, limit }))) continue;
    const data = create(schema, {
      quota,
      used: BigInt(Math.floor(used)),
      limit: BigInt(limit),
      tier: toTierMessage(state.tier),
      ...(state.isMonthly && { resetsAt: timestampFromMs(month.endsAt) }),
    });
    await events.append(tx, { accountId, subject: accountId }, schema, data);
    await mailManagers(mailer, tx, state, percent);
  }
}
