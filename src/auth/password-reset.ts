import { create } from "@bufbuild/protobuf";
import { type Empty, EmptySchema } from "@bufbuild/protobuf/wkt";
import { listMemberships } from "../accounts/memberships.ts";
import { userActor } from "../audit/audit-log.ts";
import type { ConfirmPasswordResetRequest } from "../gen/pilothouse/v1/auth_pb.ts";
import type { Call } from "../kernel/call.ts";
import type { AuthServiceParts } from "./auth-parts.ts";
import { clientOf } from "./logins/client.ts";
import { recordDevice } from "./logins/store.ts";
import { findMailToken, useMailToken } from "./mail-tokens.ts";
import { changePasswordHash } from "./new-password.ts";
import { createVerification } from "./verification.ts";

/** Creates the method that sets a new password with the link from an e-mail. */
export function createPasswordReset(parts: AuthServiceParts) {
  const { db, clock, passwords, audit } = parts;
  const verify = createVerification(parts);
  return async (call: Call, { token, password }: ConfirmPasswordResetRequest): Promise<Empty> => {
    const now = clock.now();
    // The token is checked first, so that guessed tokens do not cost a password hash.
    const { email } = await findMailToken(db, "password-reset", token, now);
    await passwords.assertStrong(password, email, call.clientAddress);
    const passwordHash = await passwords.hash(password, call.clientAddress);
    const { network, family } = clientOf(call);
    await db.transaction(async (tx) => {
      const { userId } = await useMailToken(tx, "password-reset", token, now);
      const user = await verify(tx, call, { userId, passwordHash: null });
      // Records the network as known, so that the owner of the mailbox can log in even if other networks have used up
      // the shared attempts.
      await recordDevice(tx, { userId, network, family }, new Date(now));
      for (const { accountId } of await listMemberships(tx, userId))
        audit.record(tx, { accountId, actor: userActor(user), action: "user.reset_password", subject: userId, call });
      await changePasswordHash(parts, tx, user, { passwordHash });
    });
    return create(EmptySchema);
  };
}
