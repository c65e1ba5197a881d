import type { FastifyInstance } from "fastify";
import { renderProblem, wantsPage } from "./error-page.ts";
import { unscriptedHeaders } from "./shell.ts";

/** Options of the demo session. */
export interface DemoSession {
  /** URL of the demo page. */
  readonly demoUrl: string;
  readonly key: string;
  /** Secret part of the path. */
  readonly linkSecret: string;
}

/** Request for the view link. */
const link = { control: true, name: "Guest" };

/**
 * Mounts a path at which GET redirects to a new view link of the demo session. If no view link can be created (first
 * request, or the session has ended), first creates a session and opens the demo page in it. Returns the path. The path
 * is secret, because other web pages must not be able to create sessions.
 */
export function mountDemoSession(fastify: FastifyInstance, { demoUrl, key, linkSecret }: DemoSession): string {
  const path = `/try/${linkSecret}`;
  let session: string | undefined;

  /** Sends a request to the REST API with the developer's API key. */
  async function post(url: string, body: object) {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const answer = await fastify.inject({ method: "POST", url, headers, payload: JSON.stringify(body) });
    return { isDone: answer.statusCode < 300, answer };
  }

  fastify.get(path, async (request, reply) => {
    let last = session === undefined ? undefined : await post(`${session}/view-links`, link);
    if (!last?.isDone) {
      last = await post("/v1/sessions", { idle_timeout_seconds: 1_800, labels: { made_by: "demo" } });
      if (last.isDone) {
        session = `/v1/sessions/${last.answer.json().id}`;
        await post(`${session}/navigate`, { url: demoUrl });
        last = await post(`${session}/view-links`, link);
      }
    }
    const { answer, isDone } = last;
    if (!isDone && wantsPage(request.raw))
      return reply.code(answer.statusCode).headers(unscriptedHeaders).send(renderProblem(answer.json()));
    if (!isDone) return reply.code(answer.statusCode).headers(answer.headers).send(answer.body);
    reply.headers({ "cache-control": "no-store", "referrer-policy": "no-referrer" });
    return reply.redirect(answer.json().url, 303);
  });
  return path;
}
