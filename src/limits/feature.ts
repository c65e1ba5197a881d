import { LimitsService } from "../gen/pilothouse/v1/limits_pb.ts";
import { defineService } from "../kernel/feature.ts";
import { createLimitsService, type LimitsServiceParts } from "./service.ts";

export const limits = defineService({
  service: LimitsService,
  create: (parts: LimitsServiceParts) => ({ methods: createLimitsService(parts) }),
});
