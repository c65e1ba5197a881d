import { sweepCapacityWaits } from "../fleet/capacity-waits.ts";
import { SessionService } from "../gen/pilothouse/v1/session_pb.ts";
import { defineService } from "../kernel/feature.ts";
import { cdpTokenBearers, sweepCdpTokens } from "./cdp/cdp-tokens.ts";
import { deleteLapsedFetches } from "./fetch/store.ts";
import { sweepWaits } from "./launch/slot-wait-store.ts";
import { createSessionService, type SessionServiceParts } from "./service.ts";
import type { Sessions } from "./sessions.ts";

/** Milliseconds between sweeps. */
const sweepEvery = 600_000;

export const sessions = defineService({
  service: SessionService,
  bearers: cdpTokenBearers,
  create: (parts: SessionServiceParts & { readonly sessions: Sessions }) => ({
    methods: createSessionService(parts),
    dueTasks: [parts.sessions.quotaTask],
    jobs: [
      {
        run: () => sweepCdpTokens(parts.db),
        every: sweepEvery,
        complaint: "failed to sweep tokens of ended sessions",
      },
      {
        run: () => deleteLapsedFetches(parts.db),
        every: sweepEvery,
        complaint: "failed to sweep lapsed fetches",
      },
      { run: () => sweepWaits(parts.db), every: sweepEvery, complaint: "failed to sweep the places of creates" },
      { run: () => sweepCapacityWaits(parts.db), every: sweepEvery, complaint: "failed to sweep waits for capacity" },
    ],
  }),
});
