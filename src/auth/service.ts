import { create } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { canonicalEmail } from "../accounts/users.ts";
import { type AuthService, type LogOutRequest, MailRequestedSchema } from "../gen/pilothouse/v1/auth_pb.ts";
import { type Call, loginOf } from "../kernel/call.ts";
import type { ServiceImplementation } from "../kernel/registry.ts";
import { toLoginMessage } from "./auth-messages.ts";
import type { AuthServiceParts } from "./auth-parts.ts";
import { createKeyRevocation } from "./key-revocation.ts";
import type { LinkRequest } from "./link-requests.ts";
import { createLogIn } from "./log-in.ts";
import { clientOf } from "./logins/client.ts";
import { validFor } from "./mail-tokens.ts";
import { createPasswordReset } from "./password-reset.ts";
import { createSignUp } from "./sign-up.ts";

export function createAuthService(parts: AuthServiceParts): ServiceImplementation<typeof AuthService> {
  const { db, logins, linkRequests } = parts;

  async function requestLink(call: Call, kind: LinkRequest["kind"], email: string) {
    await linkRequests.requestAsUser({ kind, email: canonicalEmail(email), client: clientOf(call) });
    return create(MailRequestedSchema, { email, validSeconds: validFor[kind] / 1_000 });
  }

  async function logOut(call: Call, { everywhere }: LogOutRequest) {
    const { userId, loginId } = loginOf(call);
    await db.transaction(async (tx) => {
      await logins.end(tx, everywhere ? { userId } : { userId, id: loginId });
      call.audit(tx, { subject: loginId, data: { everywhere } });
    });
    return create(EmptySchema);
  }

  return {
    ...createSignUp(parts),
    ...createLogIn(parts),
    logOut,
    requestMagicLink: (call, { email }) => requestLink(call, "magic-link", email),
    requestPasswordReset: (call, { email }) => requestLink(call, "password-reset", email),
    confirmPasswordReset: createPasswordReset(parts),
    revokeKeys: createKeyRevocation(parts),
    refresh: async (_call, { refreshToken, accountId }) =>
      toLoginMessage(await logins.refresh(refreshToken, accountId)),
  };
}
