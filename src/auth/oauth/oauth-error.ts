import { type Failure, fail } from "../../platform/errors.ts";

/** Error codes of RFC 6749, 5.2, that the API reports as `bad-request`. */
type RequestError = "invalid_request" | "invalid_grant" | "invalid_scope" | "unsupported_grant_type";

export function oauthError(error: RequestError, detail: string): Failure {
  return fail("bad-request", { error }, { detail });
}

/** The failure for every invalid client; which part was wrong is not disclosed. */
export function invalidClient(): Failure {
  return fail(
    "unauthorized",
    { error: "invalid_client" },
    { detail: "no API key has this id and secret: check client_id and client_secret" },
  );
}
