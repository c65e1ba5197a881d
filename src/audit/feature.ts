import { AuditService } from "../gen/pilothouse/v1/audit_pb.ts";
import { defineService } from "../kernel/feature.ts";
import { lowestId } from "../platform/ids.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { createAuditService } from "./service.ts";
import { deleteEntriesBefore } from "./store.ts";

/** Milliseconds between deletions of expired entries. */
const sweepEvery = 600_000;

/** Retention in milliseconds: 365 days. */
const keptFor = 365 * 24 * 3_600_000;

/** Maximum number of entries per delete statement. */
const batch = 1_000;

export const auditFeature = defineService({
  service: AuditService,
  create: ({ db, clock }: Pick<PlatformParts, "db" | "clock">) => ({
    methods: createAuditService(db),
    jobs: [
      {
        async run() {
          const oldest = lowestId("aud", clock.now() - keptFor);
          while ((await deleteEntriesBefore(db, oldest, batch)) === batch);
        },
        every: sweepEvery,
        complaint: "failed to delete old audit log entries",
      },
    ],
  }),
});
