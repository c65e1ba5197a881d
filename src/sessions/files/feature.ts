import { FileService } from "../../gen/pilothouse/v1/file_pb.ts";
import { defineService } from "../../kernel/feature.ts";
import { sweepTask } from "../../platform/sweep-task.ts";
import { fileLinkBearers, sweepFileLinks } from "./link-store.ts";
import { createFileService, type FileServiceParts } from "./service.ts";

export const files = defineService({
  service: FileService,
  bearers: fileLinkBearers,
  create: (parts: FileServiceParts) => ({
    methods: createFileService(parts),
    jobs: [sweepTask(() => sweepFileLinks(parts.db), "failed to sweep expired links to files")],
  }),
});
