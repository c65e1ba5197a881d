import { deleteLapsedUsers } from "../accounts/users.ts";
import { AuthService } from "../gen/pilothouse/v1/auth_pb.ts";
import { defineService } from "../kernel/feature.ts";
import { createInvites } from "../teams/invites.ts";
import type { AuthServiceParts } from "./auth-parts.ts";
import { createLinkRequests, type LinkRequestsParts } from "./link-requests.ts";
import { deleteExpiredMailTokens } from "./mail-tokens.ts";
import { createAuthService } from "./service.ts";

/** Milliseconds between sweeps of expired sign-ups and links. */
const sweepEvery = 600_000;

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
        {
          async run() {
            const now = clock.now();
            await deleteLapsedUsers(db, now);
            await deleteExpiredMailTokens(db, now);
          },
          every: sweepEvery,
          complaint: "failed to sweep expired sign-ups and links",
        },
      ],
    };
  },
});
