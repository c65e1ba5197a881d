import { deleteExpiredSignUps } from "../accounts/users.ts";
import { AuthService } from "../gen/pilothouse/v1/auth_pb.ts";
import { defineService } from "../kernel/feature.ts";
import { sweepTask } from "../platform/sweep-task.ts";
import { createInvites } from "../teams/invites.ts";
import type { AuthServiceParts } from "./auth-parts.ts";
import { createLinkRequests, type LinkRequestsParts } from "./link-requests.ts";
import { deleteExpiredMailTokens } from "./mail-tokens.ts";
import { createAuthService } from "./service.ts";

export const auth = defineService({
  service: AuthService,
  create(parts: Omit<AuthServiceParts, "linkRequests" | "invites"> & LinkRequestsParts) {
    const linkRequests = createLinkRequests(parts);
    const invites = createInvites(parts);
    const { db, clock } = parts;
    return {
      methods: createAuthService({ ...parts, linkRequests, invites }),
      jobKinds: linkRequests.jobKinds,
      jobs: [
        sweepTask(async () => {
          const now = clock.now();
          await deleteExpiredSignUps(db, now);
          await deleteExpiredMailTokens(db, now);
        }, "failed to sweep expired sign-ups and links"),
      ],
    };
  },
});
