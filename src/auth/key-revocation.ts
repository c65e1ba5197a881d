import { create } from "@bufbuild/protobuf";
import { type Empty, EmptySchema } from "@bufbuild/protobuf/wkt";
import { findUser } from "../accounts/users.ts";
import { userActor } from "../audit/audit-log.ts";
import type { RevokeKeysRequest } from "../gen/pilothouse/v1/auth_pb.ts";
import { revokeWithEvent } from "../identity/api-keys/revocation.ts";
import { lockKeysCreatedBy } from "../identity/api-keys/store.ts";
import type { Call } from "../kernel/call.ts";
import type { AuthServiceParts } from "./auth-parts.ts";
import { invalidMailToken, useMailToken } from "./mail-tokens.ts";

/** Creates the method that revokes the API keys that a user created, with the link from an e-mail. */
export function createKeyRevocation(parts: AuthServiceParts) {
  const { db, clock, audit } = parts;
  return (call: Call, { token }: RevokeKeysRequest): Promise<Empty> =>
    db.transaction(async (tx) => {
      const now = clock.now();
      const { userId } = await useMailToken(tx, "keys", token, now);
      const user = await findUser(tx, userId);
      if (!user) throw invalidMailToken();
      for (const key of await lockKeysCreatedBy(tx, { userId }, new Date(now))) {
        await revokeWithEvent(parts, tx, key, userId);
        const { account_id: accountId, id: subject, name } = key;
        const revoked = { accountId, action: "api_key.revoke", subject, data: { name } };
        audit.record(tx, { ...revoked, actor: userActor(user), call });
      }
      return create(EmptySchema);
    });
}
