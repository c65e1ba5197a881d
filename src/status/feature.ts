import { StatusService } from "../gen/pilothouse/v1/status_pb.ts";
import { defineService } from "../kernel/feature.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { sweepTask } from "../platform/sweep-task.ts";
import { createStatusService } from "./service.ts";
import type { Status } from "./status.ts";
import { deleteOldSamples } from "./store.ts";

interface StatusFeatureParts extends Pick<PlatformParts, "config" | "db" | "clock"> {
  readonly status: Status;
}

/** Retention of spans and incidents in milliseconds. The SLA report covers 24 months. */
const keptFor = 26 * 31 * 86_400_000;

export const status = defineService({
  service: StatusService,
  create: ({ status: own, config, db, clock }: StatusFeatureParts) => ({
    methods: createStatusService(own, config.slaTarget),
    jobKinds: [own.mails.jobKind],
    dueTasks: [own.mails.task],
    jobs: [
      sweepTask(async () => {
        await own.subscriptions.sweep();
        const now = clock.now();
        await deleteOldSamples(db, { gateways: new Date(now - own.pace.forgetAfter), rest: new Date(now - keptFor) });
      }, "failed to delete old status records"),
    ],
  }),
});
