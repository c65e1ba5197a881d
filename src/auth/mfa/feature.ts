import { MfaService } from "../../gen/pilothouse/v1/mfa_pb.ts";
import { defineService } from "../../kernel/feature.ts";
import { type RemovalParts, removalTask } from "./removal.ts";
import { createMfaService, type MfaServiceParts } from "./service.ts";

export const mfa = defineService({
  service: MfaService,
  create: (parts: MfaServiceParts & RemovalParts) => ({
    methods: createMfaService(parts),
    dueTasks: [removalTask(parts)],
  }),
});
