import { defineService } from "../feature.ts";
import { LegalService } from "../gen/pilothouse/v1/legal_pb.ts";
import { createLegalService, type LegalServiceParts } from "./service.ts";
import { legalMigrations } from "./tables.ts";

export const legal = defineService({
  service: LegalService,
  migrations: legalMigrations,
  create: (parts: LegalServiceParts) => ({ methods: createLegalService(parts) }),
});
