import { defineService } from "../feature.ts";
import type { Fleet } from "../fleet/fleet.ts";
import { SessionService } from "../gen/pilothouse/v1/session_pb.ts";
import type { Config } from "../platform/config.ts";
import { createSessionService, type SessionServiceParts } from "./service.ts";
import type { SessionRoutes } from "./session-routes.ts";
import { sessionMigrations } from "./tables.ts";

/** Most of what it needs is the app's under the same name. */
type SessionFeatureParts = Omit<
  SessionServiceParts,
  "channels" | "routes" | "queueMs" | "proxyCheck" | "errorsBase"
> & { readonly config: Config; readonly fleet: Fleet; readonly sessionRoutes: SessionRoutes };

export const sessions = defineService({
  service: SessionService,
  migrations: sessionMigrations,
  create: (parts: SessionFeatureParts) => ({ methods: implementSessions(parts) }),
});

/** Makes the implementation from what the app has. */
export function implementSessions(parts: SessionFeatureParts) {
  const { queueMs, proxyCheck, errorsBase } = parts.config;
  const { channels } = parts.fleet;
  return createSessionService({
    ...parts,
    channels,
    routes: parts.sessionRoutes,
    queueMs,
    proxyCheck,
    errorsBase,
  });
}
