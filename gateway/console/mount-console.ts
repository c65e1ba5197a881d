import { randomBytes } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Config } from "../../src/platform/config.ts";
import { fail } from "../../src/platform/errors.ts";
import { hostName } from "../../src/platform/loopback.ts";
import { namesOfService } from "../own-hosts.ts";
import { acceptsCoding } from "../pages/pages.ts";
import type { ConsoleFiles } from "./console-files.ts";

const consolePath = "/console";

/**
 * Path prefix of links in e-mails. The links redirect to pages of the console. Browsers keep the fragment, which
 * contains the token.
 */
const mailPath = "/auth";

/** Mounts the pages and assets of the console. */
export function mountConsole(rest: FastifyInstance, config: Pick<Config, "publicUrl">, files: ConsoleFiles): void {
  const assertHost = createHostCheck(config);
  rest.get(consolePath, (_, reply) => reply.redirect(`${consolePath}/`));
  for (const path of files.paths) {
    const url = `${consolePath}${path.replaceAll("$", ":")}`;
    rest.get(url, { onRequest: async (request) => assertHost(request) }, (_, reply) => sendPage(reply, files));
    if (path.startsWith(`${mailPath}/`)) rest.get(path, (_, reply) => reply.redirect(`${consolePath}${path}`));
  }
  rest.get<{ Params: { name: string } }>(`${consolePath}/assets/:name`, (request, reply) => {
    const asset = files.assets.get(request.params.name);
    if (!asset) throw fail("not-found", {}, { detail: "the console has no such file: load the page again" });
    const accepted = request.headers["accept-encoding"] ?? "";
    reply.headers({
      "content-type": asset.type,
      // The file name contains a hash of the content.
      "cache-control": "public, max-age=31536000, immutable",
      vary: "Accept-Encoding",
      "x-content-type-options": "nosniff",
    });
    if (acceptsCoding(accepted, "br")) return reply.header("content-encoding", "br").send(asset.brotli);
    if (acceptsCoding(accepted, "gzip")) return reply.header("content-encoding", "gzip").send(asset.gzip);
    return reply.send(asset.plain);
  });
}

/**
 * Returns a check that throws `forbidden` for hosts other than that of PUBLIC_URL and loopback names, as a defence
 * against DNS rebinding.
 */
export function createHostCheck(config: Pick<Config, "publicUrl">): (request: FastifyRequest) => void {
  const isServiceName = namesOfService(config);
  return ({ raw }) => {
    const host = String(raw.headers[":authority"] ?? raw.headers.host);
    if (isServiceName(hostName(host))) return;
    const detail = `${consolePath} is served under the host of PUBLIC_URL and on loopback: use one of these`;
    throw fail("forbidden", {}, { detail });
  };
}

function sendPage(reply: FastifyReply, files: ConsoleFiles): FastifyReply {
  const nonce = randomBytes(16).toString("base64");
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "connect-src 'self'",
    "img-src 'self' blob: data:",
    "frame-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  reply.headers({
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "content-security-policy": policy.join("; "),
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
  });
  return reply.send(files.pageWith(nonce));
}
