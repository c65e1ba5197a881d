import { defineService } from "../feature.ts";
import { LimitsService } from "../gen/pilothouse/v1/limits_pb.ts";
import { createLimitsService, type LimitsServiceParts } from "./service.ts";

export const limits = defineService({
  service: LimitsService,
  create: (parts: LimitsServiceParts) => ({ methods: createLimitsService(parts) }),
});
