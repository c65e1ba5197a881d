import { DeletionService } from "../gen/pilothouse/v1/deletion_pb.ts";
import { defineService } from "../kernel/feature.ts";
import { createDeletionService, type DeletionServiceParts } from "./service.ts";
import { sweepDeleted } from "./sweep.ts";

/** Milliseconds between two looks for accounts whose week is over. */
const sweepEvery = 600_000;

/** The deletion of accounts. */
export const deletion = defineService({
  service: DeletionService,
  create: (parts: DeletionServiceParts) => ({
    methods: createDeletionService(parts),
    jobs: [
      {
        run: () => sweepDeleted(parts),
        every: sweepEvery,
        complaint: "accounts that are to be deleted cannot be swept at the moment",
      },
    ],
  }),
});
