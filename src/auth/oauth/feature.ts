import { OAuthService } from "../../gen/pilothouse/v1/oauth_pb.ts";
import { defineService } from "../../kernel/feature.ts";
import { keyTokenBearers } from "./key-token.ts";
import { createOAuthService, type OAuthServiceParts } from "./service.ts";

/** Milliseconds between two looks for tokens that have expired. */
const sweepEvery = 600_000;

export const oauth = defineService({
  service: OAuthService,
  bearers: keyTokenBearers,
  create: (parts: OAuthServiceParts) => ({
    methods: createOAuthService(parts),
    jobs: [
      {
        async run() {
          // A day later: meanwhile they answer that they have expired.
          const before = new Date(parts.clock.now() - 86_400_000);
          await parts.db.sql.deleteFrom("key_tokens").where("expires_at", "<", before).execute();
        },
        every: sweepEvery,
        complaint: "expired tokens of keys cannot be swept at the moment",
      },
    ],
  }),
});
