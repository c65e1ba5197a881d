import { SessionLogService } from "../../gen/pilothouse/v1/session_log_pb.ts";
import { defineService } from "../../kernel/feature.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import { sweepTask } from "../../platform/sweep-task.ts";
import { createSessionLogService, type SessionLogParts } from "./service.ts";
import { accountLogBytes, createPartition, dayOf, dropPartitions, keptDays, trimLogs } from "./store.ts";

export const sessionLogs = defineService({
  service: SessionLogService,
  create: (parts: SessionLogParts) => ({
    methods: createSessionLogService(parts),
    jobs: [sweepTask(() => sweepSessionLogs(parts), "failed to remove old session logs")],
  }),
});

/**
 * Drops expired partitions, creates the partitions of today and tomorrow, and deletes the oldest logs of accounts above
 * the limit.
 */
export async function sweepSessionLogs(
  { db, clock }: Pick<PlatformParts, "db" | "clock">,
  limit = accountLogBytes,
): Promise<void> {
  const now = clock.now();
  await dropPartitions(db, dayOf(now, -keptDays));
  for (const days of [0, 1]) await createPartition(db, dayOf(now, days));
  await trimLogs(db, limit);
}
