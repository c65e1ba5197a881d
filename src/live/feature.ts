import { defineService } from "../feature.ts";
import { LiveService } from "../gen/pilothouse/v1/live_pb.ts";
import { createLiveService, type LiveServiceParts } from "./service.ts";

export const live = defineService({
  service: LiveService,
  create: (parts: LiveServiceParts) => ({ methods: createLiveService(parts) }),
});
