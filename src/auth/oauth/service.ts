import { create } from "@bufbuild/protobuf";
import {
  type OAuthService,
  type TokenRequest,
  type TokenResponse,
  TokenResponseSchema,
} from "../../gen/pilothouse/v1/oauth_pb.ts";
import { authorizeGrant } from "../../identity/api-keys/grants.ts";
import { keyBearers } from "../../identity/api-keys/key-bearer.ts";
import { parseToken } from "../../identity/api-keys/token.ts";
import type { Throttles } from "../../identity/throttle.ts";
import type { Credential } from "../../kernel/bearer-kind.ts";
import type { AuditLog, Call } from "../../kernel/call.ts";
import type { ServiceImplementation } from "../../kernel/registry.ts";
import { Failure } from "../../platform/errors.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import { hashSecret, matchesHash } from "../../platform/secrets/secrets.ts";
import { clientOf } from "../logins/client.ts";
import { loginBearers } from "../logins/login-bearer.ts";
import { parseAccessToken } from "../logins/login-tokens.ts";
import type { Logins } from "../logins/logins.ts";
import { type ClientCredentials, readClient } from "./client-credentials.ts";
import { newTokenSecret, writeKeyToken } from "./key-token.ts";
import { invalidClient, oauthError } from "./oauth-error.ts";

/** Milliseconds for which a token is valid. */
const lifetimeMs = 900_000;

/**
 * Maximum failures per hour for each client id and network. Client ids are public, so a limit without the network would
 * let others block a client.
 */
const maxFailures = 100;

export interface OAuthServiceParts extends Pick<PlatformParts, "db" | "ids" | "clock"> {
  readonly throttles: Throttles;
  readonly logins: Logins;
  readonly audit: AuditLog;
}

export function createOAuthService(parts: OAuthServiceParts): ServiceImplementation<typeof OAuthService> {
  const { db, ids, clock, throttles, logins, audit } = parts;
  const [keys, access] = [keyBearers(db), loginBearers(db)];

  async function findKey({ clientAddress }: Call, { id, secret }: ClientCredentials): Promise<Credential> {
    const token = parseToken(secret);
    const key = token?.id === id ? (await keys.find([id])).get(id) : undefined;
    if (!token || !key || !matchesHash(token.secret, key.secretHash) || key.isRevoked) throw invalidClient();
    if (key.expiresAt && key.expiresAt.getTime() <= clock.now()) throw invalidClient();
    if (key.principal.allowsAddress?.(clientAddress) === false) throw invalidClient();
    return key;
  }

  async function issueForKey(call: Call, request: TokenRequest): Promise<TokenResponse> {
    const client = readClient(call, request);
    const name = `oauth ${client.id.slice(0, 64)} ${clientOf(call).network}`;
    const counted = await throttles.take([{ name, limit: maxFailures }], "attempts at the secret of this client");
    const { principal, expiresAt } = await findKey(call, client);
    await throttles.refund(counted);
    const requested = new Set(request.scope?.split(" ").filter(Boolean));
    const [missing] = requested.difference(principal.scopes);
    if (missing !== undefined)
      throw oauthError("invalid_scope", `the key lacks the scope ${missing}: remove it from scope`);
    const scopes = [...(requested.size > 0 ? requested : principal.scopes)];
    const [id, secret, now] = [ids.next("tok"), newTokenSecret(), clock.now()];
    const ends = Math.min(now + lifetimeMs, expiresAt?.getTime() ?? Number.POSITIVE_INFINITY);
    const row = { id, key_id: client.id, secret_hash: hashSecret(secret), scopes, expires_at: new Date(ends) };
    await db.transaction(async (tx) => {
      await authorizeGrant(tx, principal, { scopes });
      tx.send(tx.sql.insertInto("key_tokens").values(row));
      audit.record(tx, {
        accountId: principal.accountId,
        actor: { kind: "key", id: client.id, name: principal.name },
        call,
        action: "key_token.create",
        subject: id,
        data: { scopes },
      });
    });
    return create(TokenResponseSchema, {
      accessToken: writeKeyToken({ id, secret }),
      tokenType: "Bearer",
      expiresIn: Math.floor((ends - now) / 1_000),
      scope: scopes.join(" "),
    });
  }

  async function refresh({ refreshToken, scope }: TokenRequest): Promise<TokenResponse> {
    if (!refreshToken) throw oauthError("invalid_request", "refresh_token is required");
    if (scope) throw oauthError("invalid_scope", "a login keeps the scopes of its role: leave scope out");
    const issued = await logins.refresh(refreshToken, undefined).catch((thrown: unknown) => {
      const isRefused = thrown instanceof Failure && ["invalid-auth-token", "forbidden"].includes(thrown.slug);
      throw isRefused ? oauthError("invalid_grant", thrown.message) : thrown;
    });
    const id = parseAccessToken(issued.tokens.access)?.id ?? "";
    const scopes = (await access.find([id])).get(id)?.principal.scopes ?? [];
    return create(TokenResponseSchema, {
      accessToken: issued.tokens.access,
      tokenType: "Bearer",
      refreshToken: issued.tokens.refresh,
      expiresIn: Math.max(0, Math.floor((issued.expiresAt.getTime() - clock.now()) / 1_000)),
      scope: [...scopes].join(" "),
    });
  }

  return {
    async token(call, request) {
      if (request.grantType === "client_credentials") return issueForKey(call, request);
      if (request.grantType === "refresh_token") return refresh(request);
      if (request.grantType === "")
        throw oauthError("invalid_request", "grant_type is required: send client_credentials or refresh_token");
      throw oauthError("unsupported_grant_type", "grant_type must be client_credentials or refresh_token");
    },
  };
}
