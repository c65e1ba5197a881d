import { SessionService } from "../gen/pilothouse/v1/session_pb.ts";
import { defineService } from "../kernel/feature.ts";
import { cdpTokenBearers, sweepCdpTokens } from "./cdp/cdp-tokens.ts";
import { createSessionService, type SessionServiceParts } from "./service.ts";
import type { Sessions } from "./sessions.ts";

/** Milliseconds between two looks for tokens of sessions that have ended. */
const sweepEvery = 600_000;

export const sessions = defineService({
  service: SessionService,
  bearers: cdpTokenBearers,
  create: (parts: SessionServiceParts & { readonly sessions: Sessions }) => ({
    methods: createSessionService(parts),
    jobs: [
      parts.sessions.quotaJob,
      {
        run: () => sweepCdpTokens(parts.db),
        every: sweepEvery,
        complaint: "tokens of ended sessions cannot be swept at the moment",
      },
    ],
  }),
});
