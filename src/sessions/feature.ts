import { defineService } from "../feature.ts";
import { SessionService } from "../gen/pilothouse/v1/session_pb.ts";
import { createSessionService, type SessionServiceParts } from "./service.ts";
import { sessionMigrations } from "./tables.ts";

export const sessions = defineService({
  service: SessionService,
  migrations: sessionMigrations,
  create: (parts: SessionServiceParts) => ({ methods: createSessionService(parts) }),
});
