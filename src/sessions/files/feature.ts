import { FileService } from "../../gen/pilothouse/v1/file_pb.ts";
import { defineService } from "../../kernel/feature.ts";
import { fileLinkBearers, sweepFileLinks } from "./link-store.ts";
import { createFileService, type FileServiceParts } from "./service.ts";

/** Milliseconds between sweeps of expired links. */
const sweepEvery = 600_000;

export const files = defineService({
  service: FileService,
  bearers: fileLinkBearers,
  create: (parts: FileServiceParts) => ({
    methods: createFileService(parts),
    jobs: [
      { run: () => sweepFileLinks(parts.db), every: sweepEvery, complaint: "failed to sweep expired links to files" },
    ],
  }),
});
