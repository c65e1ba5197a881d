import { AuditService } from "../gen/pilothouse/v1/audit_pb.ts";
import { defineService } from "../kernel/feature.ts";
import { lowestId } from "../platform/ids.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { deleteInBatches, sweepTask } from "../platform/sweep-task.ts";
import { createAuditService } from "./service.ts";
import { deleteEntriesBefore } from "./store.ts";

/** Retention in milliseconds: 365 days. */
const keptFor = 365 * 24 * 3_600_000;

export const auditFeature = defineService({
  service: AuditService,
  create: ({ db, clock }: Pick<PlatformParts, "db" | "clock">) => ({
    methods: createAuditService(db),
    jobs: [
      sweepTask(async () => {
        const oldest = lowestId("aud", clock.now() - keptFor);
        await deleteInBatches((limit) => deleteEntriesBefore(db, oldest, limit));
      }, "failed to delete old audit log entries"),
    ],
  }),
});
