import type { TokenRequest } from "../../gen/pilothouse/v1/oauth_pb.ts";
import type { Call } from "../../kernel/call.ts";
import { invalidClient, oauthError } from "./oauth-error.ts";

export interface ClientCredentials {
  readonly id: string;
  readonly secret: string;
}

const basic = /^Basic +(.*)$/i;

/**
 * Reads the client's credentials from the header (HTTP Basic) or the body. Throws if there are none, or if a header
 * comes with a secret or another client id in the body (RFC 6749, 2.3).
 */
export function readClient(call: Pick<Call, "header">, { clientId, clientSecret }: TokenRequest): ClientCredentials {
  const [, encoded] = basic.exec(call.header("authorization") ?? "") ?? [];
  if (encoded === undefined) {
    if (!clientId || !clientSecret) throw invalidClient();
    return { id: clientId, secret: clientSecret };
  }
  const [first = "", ...rest] = Buffer.from(encoded, "base64").toString().split(":");
  const id = decode(first);
  if (clientSecret || (clientId && clientId !== id))
    throw oauthError("invalid_request", "the header and the body both have credentials: send only one of them");
  return { id, secret: decode(rest.join(":")) };
}

/** Form-decodes a part of the Basic credentials (RFC 6749, 2.3.1). */
function decode(part: string): string {
  return new URLSearchParams(`part=${part}`).get("part") ?? "";
}
