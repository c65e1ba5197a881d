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
import { recordThreshold } from "./store.ts";
import { toTierMessage } from "./tier-message.ts";

/** Thresholds of every quota in percent, with their events. */
const thresholds = [
  { percent: 80, schema: QuotaWarningEventSchema },
  { percent: 100, schema: QuotaExceededEventSchema },
] as const;

/** Returns the amounts of a quota that trigger notifications. */
export const reportedAmountsOf = (limit: number): number[] => thresholds.map(({ percent }) => (limit * percent) / 100);

/** Usage of a quota, in its own unit. */
export interface QuotaState {
  readonly accountId: string;
  readonly tier: string;
  readonly quota: "session_minutes" | "profile_storage_bytes";
  readonly used: number;
  /** Earlier usage. If set, only thresholds crossed since then are reported. */
  readonly before?: number;
  readonly limit: number;
  /** Month in which each threshold is reported once. */
  readonly month: Month;
  /** Whether the quota resets each month. */
  readonly isMonthly: boolean;
}

/** Recipients of notifications: the event log, and people by e-mail. */
export interface QuotaNotificationParts {
  readonly events: EventLog;
  readonly mailer: Mailer;
}

const quotaNames: Readonly<Record<QuotaState["quota"], string>> = {
  session_minutes: "monthly session minutes",
  profile_storage_bytes: "profile storage",
};

/** Notifies the owners and admins of an account by e-mail, according to their preferences. */
async function mailManagers(mailer: Mailer, tx: Tx, { accountId, quota }: QuotaState, percent: number): Promise<void> {
  const { name: accountName } = await findAccount(tx, accountId);
  const subject = percent < 100 ? "A quota is almost used up" : "A quota is used up";
  const lines = [`The account ${accountName} has used ${percent} % of its ${quotaNames[quota]}.`];
  for (const manager of await listManagers(tx, accountId))
    await mailer.send(tx, mailTo(manager, { kind: "usage_alerts", subject, lines }));
}

/** Reports newly reached thresholds, each once per month and limit. */
export async function reportThresholds(
  { events, mailer }: QuotaNotificationParts,
  tx: Tx,
  state: QuotaState,
): Promise<void> {
  const { accountId, quota, month, limit, used, before = Number.NEGATIVE_INFINITY } = state;
  if (!Number.isFinite(limit)) return;
  for (const { percent, schema } of thresholds) {
    const threshold = (limit * percent) / 100;
    if (used < threshold || before >= threshold) continue;
    if (!(await recordThreshold(tx, { accountId, quota, month, percent, limit }))) continue;
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
