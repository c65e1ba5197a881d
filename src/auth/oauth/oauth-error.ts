import { type Failure, fail } from "../../platform/errors.ts";

/** Codes of RFC 6749, 5.2, that are `bad-request` here. */
type RequestError = "invalid_request" | "invalid_grant" | "invalid_scope" | "unsupported_grant_type";

/** Makes the failure of a request of the token endpoint. */
export function oauthError(error: RequestError, detail: string): Failure {
  return fail("bad-request", { error }, { detail });
}

/** The one answer to every client that is not who it says: which part was wrong, nobody is told. */
export function invalidClient(): Failure {
  return fail("unauthorized", { error: "invalid_client" }, { detail: "no API key has this id and secret" });
}
