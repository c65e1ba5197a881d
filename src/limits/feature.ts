import { defineService } from "../feature.ts";
import { LimitsService } from "../gen/pilothouse/v1/limits_pb.ts";
import { createLimitsService, type LimitsServiceParts } from "./service.ts";
import { limitsMigrations } from "./tables.ts";

export const limits = defineService({
  service: LimitsService,
  migrations: limitsMigrations,
  create: (parts: LimitsServiceParts) => ({ methods: createLimitsService(parts) }),
});
