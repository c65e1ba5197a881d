import { OAuthService } from "../../gen/pilothouse/v1/oauth_pb.ts";
import { defineService } from "../../kernel/feature.ts";
import { sweepTask } from "../../platform/sweep-task.ts";
import { keyTokenBearers } from "./key-token.ts";
import { createOAuthService, type OAuthServiceParts } from "./service.ts";

export const oauth = defineService({
  service: OAuthService,
  bearers: keyTokenBearers,
  create: (parts: OAuthServiceParts) => ({
    methods: createOAuthService(parts),
    jobs: [
      sweepTask(async () => {
        // Tokens are deleted a day late, so that a token that has just expired is reported as expired.
        const before = new Date(parts.clock.now() - 86_400_000);
        await parts.db.sql.deleteFrom("key_tokens").where("expires_at", "<", before).execute();
      }, "failed to sweep expired OAuth tokens"),
    ],
  }),
});
