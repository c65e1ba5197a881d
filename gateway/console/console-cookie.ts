import type { FastifyRequest } from "fastify";
import type { Config } from "../../src/platform/config.ts";
import { fail } from "../../src/platform/errors.ts";
import { hostName, isLoopback } from "../../src/platform/loopback.ts";

/** The cookie that holds the refresh token of the console's login. */
export interface ConsoleCookie {
  /** Returns the token in the cookie of a request, if any. */
  read(request: FastifyRequest): string | undefined;
  /** Returns the Set-Cookie header that stores `token`, or that deletes the cookie if `token` is undefined. */
  write(token: string | undefined): string;
}

const day = 86_400;

/**
 * Returns the origin of the requested address. If the host is that of PUBLIC_URL, returns the origin of PUBLIC_URL,
 * because a proxy may have terminated TLS.
 */
function originOf({ raw }: FastifyRequest, publicUrl: URL): string {
  const host = String(raw.headers[":authority"] ?? raw.headers.host).toLowerCase();
  if (host === publicUrl.host) return publicUrl.origin;
  const scheme = "encrypted" in raw.socket && raw.socket.encrypted === true ? "https" : "http";
  return new URL(`${scheme}://${host}`).origin;
}

/**
 * Returns the cookie for the origin of a request. Over https, its name has the prefix `__Host-`. Over http on loopback,
 * browsers refuse this prefix and send cookies to all ports, so the name contains the port. Over http on other hosts,
 * returns undefined.
 */
export function cookieFor(request: FastifyRequest, config: Pick<Config, "publicUrl">): ConsoleCookie | undefined {
  const { protocol, host, port } = new URL(originOf(request, new URL(config.publicUrl)));
  if (protocol === "https:") {
    return createCookie("__Host-pilothouse_console", `Secure; HttpOnly; SameSite=Strict; Path=/`, 30 * day);
  }
  if (!isLoopback(hostName(host))) return undefined;
  return createCookie(`pilothouse_console_${port || 80}`, "HttpOnly; SameSite=Strict; Path=/console/session", day);
}

function createCookie(name: string, attributes: string, seconds: number): ConsoleCookie {
  return {
    read({ headers }) {
      const pairs = (headers.cookie ?? "").split(";").map((pair) => pair.trim());
      return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1) || undefined;
    },
    write: (token) => `${name}=${token ?? ""}; Max-Age=${token === undefined ? 0 : seconds}; ${attributes}`,
  };
}

/**
 * Throws `forbidden` unless the request comes from a page of the console. SameSite alone would also allow pages on
 * other ports of the host.
 */
export function assertFromConsole(request: FastifyRequest, config: Pick<Config, "publicUrl">): void {
  const { headers } = request;
  const site = headers["sec-fetch-site"];
  const isOwn = headers.origin === originOf(request, new URL(config.publicUrl));
  if (isOwn && (site === undefined || site === "same-origin") && headers["x-console"] === "1") return;
  const detail = "only pages of the console may call this: send the Origin of the service and the header X-Console: 1";
  throw fail("forbidden", {}, { detail });
}
