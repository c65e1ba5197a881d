import { createHmac } from "node:crypto";
import type { FastifyInstance } from "fastify";
import type { FirstRun } from "../../src/auth/first-run.ts";
import { fail } from "../../src/platform/errors.ts";
import { hashSecret, matchesHash } from "../../src/platform/secrets/secrets.ts";
import { forwardingHeaders } from "../peer.ts";
import { peerOf } from "../transport-parts.ts";
import { type ConsoleSessionParts, createConsoleAdmission, readStrings } from "./console-session.ts";

/** Data of the page on which the first person becomes the owner of the developer account. */
export interface FirstRunOffer {
  readonly firstRun: FirstRun;
  /** Token in the fragment of the printed link. */
  readonly token: string;
}

/**
 * Derives the token (128 bits) from a secret of the supervisor. A gateway that restarts accepts the same token; a
 * supervisor that restarts has another secret.
 */
export function firstRunToken(linkSecret: string): string {
  return createHmac("sha256", linkSecret).update("first run").digest().subarray(0, 16).toString("base64url");
}

/** Path and fragment of the printed link. */
export const firstRunPath = (token: string): string => `/console/first-run#${token}`;

const maxBody = 4_096;

/** Mounts the endpoint that creates the owner of the developer account once, and returns a login. */
export function mountFirstRun(
  rest: FastifyInstance,
  parts: ConsoleSessionParts,
  { firstRun, token }: FirstRunOffer,
): void {
  const admit = createConsoleAdmission(parts);
  const hash = hashSecret(token);
  const isPublic = new URL(parts.config.publicUrl).protocol === "https:";
  rest.post("/console/first-run", { onRequest: admit, bodyLimit: maxBody }, async (request, reply) => {
    if (!isPublic && forwardingHeaders.some((name) => request.headers[name] !== undefined)) {
      const detail = "the request was forwarded: open the link on this machine, or set PUBLIC_URL to an https address";
      throw fail("forbidden", {}, { detail });
    }
    const given = readStrings(request.body, ["token", "email", "name", "password"]);
    if (!matchesHash(given.token ?? "", hash))
      throw fail("invalid-auth-token", {}, { detail: "open the link that the service printed at its last start" });
    const { email = "", name = "", password = "" } = given;
    const { requestId, clientAddress, header } = peerOf(request.raw, parts.transport);
    const login = await firstRun.makeOwner({ requestId, clientAddress, header }, { email, name, password });
    reply.header("cache-control", "no-store");
    return {
      access_token: login.tokens.access,
      expires_at: login.expiresAt.toISOString(),
      refresh_token: login.tokens.refresh,
    };
  });
}
