import { sweepCapacityWaits } from "../fleet/capacity-waits.ts";
import { SessionService } from "../gen/pilothouse/v1/session_pb.ts";
import { defineService } from "../kernel/feature.ts";
import { sweepTask } from "../platform/sweep-task.ts";
import { cdpTokenBearers, sweepCdpTokens } from "./cdp/cdp-tokens.ts";
import { deleteLapsedFetches } from "./fetch/store.ts";
import { sweepWaits } from "./launch/slot-wait-store.ts";
import { createSessionService, type SessionServiceParts } from "./service.ts";
import type { Sessions } from "./sessions.ts";

export const sessions = defineService({
  service: SessionService,
  bearers: cdpTokenBearers,
  create: (parts: SessionServiceParts & { readonly sessions: Sessions }) => ({
    methods: createSessionService(parts),
    dueTasks: [parts.sessions.quotaTask],
    jobs: [
      sweepTask(() => sweepCdpTokens(parts.db), "failed to sweep tokens of ended sessions"),
      sweepTask(() => deleteLapsedFetches(parts.db), "failed to sweep lapsed fetches"),
      sweepTask(() => sweepWaits(parts.db), "failed to sweep expired waits for slots"),
      sweepTask(() => sweepCapacityWaits(parts.db), "failed to sweep waits for capacity"),
    ],
  }),
});
