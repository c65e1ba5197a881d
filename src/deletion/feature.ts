import { DeletionService } from "../gen/pilothouse/v1/deletion_pb.ts";
import { defineService } from "../kernel/feature.ts";
import { createDeletionService, type DeletionServiceParts } from "./service.ts";
import { sweepDeleted } from "./sweep.ts";

/** Milliseconds between checks for accounts whose grace period of a week has ended. */
const sweepEvery = 600_000;

export const deletion = defineService({
  service: DeletionService,
  create: (parts: DeletionServiceParts) => ({
    methods: createDeletionService(parts),
    jobs: [
      {
        run: () => sweepDeleted(parts),
        every: sweepEvery,
        failureMessage: "failed to delete closed accounts",
      },
    ],
  }),
});
