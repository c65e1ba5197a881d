import { deleteLapsedUsers } from "../accounts/users.ts";
import { defineService } from "../feature.ts";
import { AuthService } from "../gen/pilothouse/v1/auth_pb.ts";
import { deleteExpiredMailTokens } from "./mail-tokens.ts";
import { type AuthServiceParts, createAuthService } from "./service.ts";
import { authMigrations } from "./tables.ts";

/** Milliseconds between two looks for sign-ups and links that have lapsed. */
const sweepEvery = 600_000;

export const auth = defineService({
  service: AuthService,
  migrations: authMigrations,
  create: (parts: AuthServiceParts) => ({
    methods: createAuthService(parts),
    jobs: [
      {
        async run() {
          const now = parts.clock.now();
          await deleteLapsedUsers(parts.db, now);
          await deleteExpiredMailTokens(parts.db, now);
        },
        every: sweepEvery,
        complaint: "sign-ups and links that have lapsed cannot be swept at the moment",
      },
    ],
  }),
});
