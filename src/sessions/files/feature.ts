import { FileService } from "../../gen/pilothouse/v1/file_pb.ts";
import { defineService } from "../../kernel/feature.ts";
import { createFileService, type FileServiceParts } from "./service.ts";

export const files = defineService({
  service: FileService,
  create: (parts: FileServiceParts) => ({ methods: createFileService(parts) }),
});
