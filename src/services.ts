import type { App } from "./app.ts";
import { ProfileService } from "./gen/pilothouse/v1/profile_pb.ts";
import { SessionService } from "./gen/pilothouse/v1/session_pb.ts";
import { createProfileService } from "./profiles/service.ts";
import { type ServedService, serve } from "./registry.ts";
import { createSessionService } from "./sessions/service.ts";

/** The registry: every service that is built, over an app. What is not in it answers `not-found`. */
export function serveAll(app: App): ServedService[] {
  const { config, fleet } = app;
  return [
    serve(
      SessionService,
      createSessionService({
        ...app,
        channels: fleet.channels,
        routes: app.sessionRoutes,
        queueMs: config.queueMs,
        proxyCheck: config.proxyCheck,
        errorsBase: config.errorsBase,
      }),
    ),
    serve(ProfileService, createProfileService(app)),
  ];
}
