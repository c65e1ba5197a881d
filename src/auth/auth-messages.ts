import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Login, LoginSchema } from "../gen/pilothouse/v1/auth_pb.ts";
import type { IssuedTokens } from "./logins/logins.ts";

export function toLoginMessage(issued: IssuedTokens): Login {
  return create(LoginSchema, {
    accessToken: issued.tokens.access,
    tokenType: "Bearer",
    expiresAt: timestampFromDate(issued.expiresAt),
    refreshToken: issued.tokens.refresh,
    refreshExpiresAt: timestampFromDate(issued.refreshExpiresAt),
    userId: issued.userId,
    accountId: issued.accountId,
    mfaEnrolled: issued.hasSecondFactor,
  });
}
