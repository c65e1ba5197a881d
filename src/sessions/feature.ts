import { defineService } from "../feature.ts";
import { SessionService } from "../gen/pilothouse/v1/session_pb.ts";
import type { Config } from "../platform/config.ts";
import { createSessionService, type SessionServiceParts } from "./service.ts";
import { sessionMigrations } from "./tables.ts";

export const sessions = defineService({
  service: SessionService,
  migrations: sessionMigrations,
  create: ({ config, ...parts }: Omit<SessionServiceParts, "errorsBase"> & { readonly config: Config }) => ({
    methods: createSessionService({ ...parts, errorsBase: config.errorsBase }),
  }),
});
