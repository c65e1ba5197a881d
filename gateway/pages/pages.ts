import { createHash } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { isErrorSlug } from "../../src/platform/error-table.ts";
import { renderError, renderUnknownError } from "./error-page.ts";
import { pageHeaders } from "./shell.ts";

/** The service's own documents, as they are served. */
export interface Pages {
  readonly openApiJson: string;
  readonly docsHtml: string;
  /** Path under which each error has its page: that of ERRORS_BASE. */
  readonly errorsPath: string;
}

/** Says at which path the error pages stand. */
export function errorsPathOf(errorsBase: string): string {
  return new URL(errorsBase).pathname.replace(/\/$/, "");
}

/** Mounts the service's own documents. They are made once; clients ask again with the ETag and get 304. */
export async function mountPages(
  fastify: FastifyInstance,
  { openApiJson, docsHtml, errorsPath }: Pages,
): Promise<void> {
  const jsonHeaders = { "content-type": "application/json; charset=utf-8", "x-content-type-options": "nosniff" };
  fastify.get("/", (_, reply) => reply.redirect("/docs"));
  fastify.get("/docs", revalidated(docsHtml, pageHeaders));
  fastify.get("/v1/openapi.json", revalidated(openApiJson, jsonHeaders));
  const unknown = renderUnknownError();
  fastify.get<{ Params: { slug: string } }>(`${errorsPath}/:slug`, ({ params: { slug } }, reply) =>
    isErrorSlug(slug)
      ? reply.headers(pageHeaders).send(renderError(slug))
      : reply.code(404).headers(pageHeaders).send(unknown),
  );
}

function revalidated(
  body: string,
  headers: Readonly<Record<string, string>>,
): (request: FastifyRequest, reply: FastifyReply) => FastifyReply {
  const etag = `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`;
  return (request, reply) => {
    reply.headers({ ...headers, etag, "cache-control": "no-cache" });
    return isKnown(etag, request.headers["if-none-match"] ?? "") ? reply.code(304).send() : reply.send(body);
  };
}

/** Tells whether an If-None-Match header has an entity tag (RFC 9110, section 13.1.2). */
export function isKnown(etag: string, header: string): boolean {
  const known = header.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return known.includes(etag) || known.includes("*");
}
