import { AuditService } from "../gen/pilothouse/v1/audit_pb.ts";
import { defineService } from "../kernel/feature.ts";
import type { Clock } from "../platform/clock.ts";
import { lowestId } from "../platform/ids.ts";
import type { Database } from "../platform/postgres/database.ts";
import { createAuditService } from "./service.ts";
import { deleteEntriesBefore } from "./store.ts";

/** Milliseconds between two deletions of old entries. */
const sweepEvery = 600_000;

/** Milliseconds for which entries are kept: 365 days. */
const keptFor = 365 * 24 * 3_600_000;

/** How many entries are deleted with one statement, so that none takes long. */
const batch = 1_000;

export const audit = defineService({
  service: AuditService,
  create: ({ db, clock }: { readonly db: Database; readonly clock: Clock }) => ({
    methods: createAuditService(db),
    jobs: [
      {
        async run() {
          const oldest = lowestId("aud", clock.now() - keptFor);
          while ((await deleteEntriesBefore(db, oldest, batch)) === batch);
        },
        every: sweepEvery,
        complaint: "old entries of the audit log cannot be deleted at the moment",
      },
    ],
  }),
});
