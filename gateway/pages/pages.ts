import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { isErrorSlug } from "../../src/platform/error-table.ts";
import type { Documents } from "./documents.ts";
import { renderError, renderUnknownError } from "./error-page.ts";
import { pageHeaders } from "./shell.ts";

export interface Pages {
  documents(): Promise<Documents>;
  /** Guide to receiving webhooks, in Markdown. */
  readonly webhooksGuide: string;
  /** Path of the error pages, from ERRORS_BASE. */
  readonly errorsPath: string;
  /** Path to which the root redirects browsers. */
  readonly home: string;
}

/** Icon of all pages. Browsers request it without a link. */
const icon =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="#1f6feb"/>' +
  '<path d="M8 3l3 10-3-2-3 2z" fill="#fff"/></svg>';

/** Returns the path of the error pages, without a trailing slash. */
export function errorsPathOf(errorsBase: string): string {
  return new URL(errorsBase).pathname.replace(/\/$/, "");
}

/** Mounts the documents of the service. */
export function mountPages(fastify: FastifyInstance, { documents, webhooksGuide, errorsPath, home }: Pages): void {
  const jsonHeaders = { "content-type": "application/json; charset=utf-8", "x-content-type-options": "nosniff" };
  const textHeaders = { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" };
  const index = { openapi: "/v1/openapi.json", docs: "/docs", status: "/status" };
  fastify.get("/", (request, reply) => {
    reply.header("vary", "Accept");
    if (request.headers.accept?.includes("text/html")) return reply.redirect(home);
    return reply.headers(jsonHeaders).send(`${JSON.stringify({ name: "Pilothouse", ...index })}\n`);
  });
  fastify.get(
    "/favicon.ico",
    revalidated(() => icon, { "content-type": "image/svg+xml", "x-content-type-options": "nosniff" }),
  );
  fastify.get(
    "/docs",
    revalidated(async () => (await documents()).docsHtml, pageHeaders),
  );
  // As plain text, because browsers download Markdown instead of showing it.
  fastify.get(
    "/docs/webhooks.md",
    revalidated(() => webhooksGuide, textHeaders),
  );
  fastify.get(
    "/v1/openapi.json",
    revalidated(async () => (await documents()).openApiJson, jsonHeaders),
  );
  const unknown = renderUnknownError();
  fastify.get<{ Params: { slug: string } }>(`${errorsPath}/:slug`, ({ params: { slug } }, reply) =>
    isErrorSlug(slug)
      ? reply.headers(pageHeaders).send(renderError(slug))
      : reply.code(404).headers(pageHeaders).send(unknown),
  );
}

/** An encoded document. */
interface Served {
  readonly body: Buffer;
  readonly gzipped: Buffer;
  readonly etag: string;
}

function serve(text: string): Served {
  // Encoded once, because encoding 600 kB takes 5 ms of the event loop, gzip takes longer, and each unread response
  // would hold a copy.
  const body = Buffer.from(text);
  const etag = `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`;
  return { body, gzipped: gzipSync(body), etag };
}

/**
 * Returns a handler that builds a document at the first request, and again after a failure. Sends 304 if the request
 * contains the document's entity tag.
 */
export function revalidated(
  read: () => string | Promise<string>,
  headers: Readonly<Record<string, string>>,
): (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> {
  let served: Promise<Served> | undefined;
  const encode = (): Promise<Served> =>
    Promise.resolve()
      .then(read)
      .then(serve)
      .catch((error: unknown) => {
        served = undefined;
        throw error;
      });
  return async (request, reply) => {
    served ??= encode();
    const { body, gzipped, etag } = await served;
    reply.headers({ ...headers, etag, "cache-control": "no-cache" }).header("vary", varyOf(reply));
    if (isKnown(etag, request.headers["if-none-match"] ?? "")) return reply.code(304).send();
    return acceptsCoding(request.headers["accept-encoding"] ?? "", "gzip")
      ? reply.header("content-encoding", "gzip").send(gzipped)
      : reply.send(body);
  };
}

/** Returns the Vary header, including the value that CORS may have set. */
function varyOf({ raw }: FastifyReply): string {
  const current = raw.getHeader("vary");
  return typeof current === "string" ? `${current}, Accept-Encoding` : "Accept-Encoding";
}

/** Returns whether an Accept-Encoding header accepts a coding (RFC 9110, section 12.5.3). */
export function acceptsCoding(header: string, coding: string): boolean {
  const codings = header.split(",").map((each) =>
    each
      .trim()
      .toLowerCase()
      .split(/\s*;\s*/),
  );
  const named = codings.find(([name]) => name === coding) ?? codings.find(([name]) => name === "*");
  return named !== undefined && !/^q=0(\.0*)?$/.test(named[1] ?? "");
}

/** Returns whether an If-None-Match header matches an entity tag (RFC 9110, section 13.1.2). */
export function isKnown(etag: string, header: string): boolean {
  const known = header.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return known.includes(etag) || known.includes("*");
}
