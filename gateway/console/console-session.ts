import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { createBuckets } from "../../src/limits/buckets.ts";
import { networkOf } from "../../src/platform/client-network.ts";
import type { Clock } from "../../src/platform/clock.ts";
import type { Config } from "../../src/platform/config.ts";
import { type FieldFault, fail, failFields } from "../../src/platform/errors.ts";
import { parseJson } from "../../src/platform/rest-json/parse.ts";
import { rateLimitHeaders } from "../gateway-call.ts";
import { refuseEmpty } from "../policies/address-bucket.ts";
import { peerOf, type TransportParts } from "../transport-parts.ts";
import { assertFromConsole, cookieFor } from "./console-cookie.ts";
import { createHostCheck } from "./mount-console.ts";

/**
 * Rate limit of the console's requests, per IPv4 address or IPv6 /64 network. The console renews its login every 15
 * minutes and when a page loads.
 */
const perMinute = { bucket: "console", capacity: 30, refillPerSecond: 0.5 };

const maxBody = 4_096;

export interface ConsoleSessionParts {
  readonly transport: TransportParts;
  readonly config: Pick<Config, "publicUrl">;
  readonly clock: Clock;
}

/**
 * Creates the `onRequest` hook for requests that the console's pages send to `/console`. The hook throws `forbidden` or
 * `rate-limited`.
 */
export function createConsoleAdmission({ transport, config, clock }: ConsoleSessionParts) {
  const assertHost = createHostCheck(config);
  const buckets = createBuckets();
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    assertHost(request);
    const { clientAddress } = peerOf(request.raw, transport);
    const owner = networkOf(clientAddress, { v4: 32, v6: 64 });
    const [own] = buckets.take(owner, [perMinute], clock.now());
    for (const state of [transport.dispatcher.drawForDocument(clientAddress), own]) {
      if (state === undefined || state.allowed) continue;
      // The headers must name one of the four public buckets, so they show `global` without tokens.
      const { capacity } = transport.dispatcher.peekAddress(clientAddress);
      reply.headers(rateLimitHeaders({ ...state, bucket: "global", capacity, remaining: 0 }));
      refuseEmpty(state, "your address");
    }
    assertFromConsole(request, config);
  };
}

/**
 * Reads a JSON object whose values must be strings. Throws `validation-failed` if `body` is not such an object or
 * contains a name that is not in `members`.
 */
export function readStrings(body: unknown, members: readonly string[]): Readonly<Record<string, string | undefined>> {
  const faults: FieldFault[] = [];
  const json = body instanceof Buffer ? parseJson(body, faults) : undefined;
  const [fault] = faults;
  if (fault) throw failFields("validation-failed", { [fault.field]: fault.message });
  if (typeof json !== "object" || json === null || Array.isArray(json))
    throw failFields("validation-failed", { body: "must be a JSON object" });
  for (const [name, value] of Object.entries(json)) {
    if (!members.includes(name)) throw failFields("validation-failed", { [name]: "is not a field of this request" });
    if (typeof value !== "string") throw failFields("validation-failed", { [name]: "must be a string" });
  }
  return { ...json };
}

/**
 * Mounts `/console/session`, which keeps the refresh token of the console's login in a cookie that scripts cannot read.
 * POST exchanges the refresh token of the body, or else of the cookie, for an access token. DELETE ends the login.
 */
export function mountConsoleSession(rest: FastifyInstance, parts: ConsoleSessionParts): void {
  const { transport, config } = parts;
  const onRequest = createConsoleAdmission(parts);

  /** Sends a request to the REST API with the client address of `request`. */
  async function post(request: FastifyRequest, url: string, body: object, token?: string) {
    const { clientAddress } = peerOf(request.raw, transport);
    const answer = await rest.inject({
      method: "POST",
      url,
      remoteAddress: clientAddress,
      headers: {
        "content-type": "application/json",
        host: request.headers.host ?? new URL(config.publicUrl).host,
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      payload: JSON.stringify(body),
    });
    return { answer, isDone: answer.statusCode < 300 };
  }

  rest.post("/console/session", { onRequest, bodyLimit: maxBody }, async (request, reply) => {
    const { refresh_token: given, account_id } = readStrings(request.body, ["refresh_token", "account_id"]);
    const cookie = cookieFor(request, config);
    const refresh_token = given ?? cookie?.read(request);
    reply.header("cache-control", "no-store");
    if (refresh_token === undefined)
      throw fail("unauthorized", {}, { detail: "you are not logged in: open the login page" });
    const { answer, isDone } = await post(request, "/v1/auth/refresh", { refresh_token, account_id });
    if (!isDone) {
      const isOver = answer.statusCode === 401 && given === undefined;
      if (cookie && isOver) reply.header("set-cookie", cookie.write(undefined));
      return reply
        .code(answer.statusCode)
        .header("content-type", answer.headers["content-type"])
        .send(answer.rawPayload);
    }
    const { access_token, expires_at, refresh_token: next } = answer.json();
    if (cookie) reply.header("set-cookie", cookie.write(next));
    return { access_token, expires_at };
  });

  rest.delete("/console/session", { onRequest }, async (request, reply) => {
    const cookie = cookieFor(request, config);
    const refresh_token = cookie?.read(request);
    if (cookie) reply.header("set-cookie", cookie.write(undefined));
    if (refresh_token !== undefined) {
      const { answer, isDone } = await post(request, "/v1/auth/refresh", { refresh_token });
      if (isDone) await post(request, "/v1/auth/logout", {}, answer.json().access_token);
    }
    return reply.code(204).send();
  });
}
