import type { FastifyInstance } from "fastify";

/** What a first session by hand needs. */
export interface DemoSession {
  /** The page that it shows. */
  readonly demoUrl: string;
  /** The developer's key. */
  readonly key: string;
  /** Stands in the path. */
  readonly linkSecret: string;
}

/** What whoever opens the page is given. */
const link = { control: true, name: "You" };

/**
 * Mounts a page that opens the demo in a session and leads to it, where it can be watched and driven; gives its path. A GET
 * makes something here, so only who was told the path can ask for it: no page that a browser happens to show.
 */
export function mountDemoSession(fastify: FastifyInstance, { demoUrl, key, linkSecret }: DemoSession): string {
  const path = `/try/${linkSecret}`;
  let session: string | undefined;

  /** Asks the service as any client would. */
  async function post(url: string, body: object) {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const answer = await fastify.inject({ method: "POST", url, headers, payload: JSON.stringify(body) });
    return { isDone: answer.statusCode < 300, answer };
  }

  fastify.get(path, async (_, reply) => {
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
    if (!isDone) return reply.code(answer.statusCode).headers(answer.headers).send(answer.body);
    reply.headers({ "cache-control": "no-store", "referrer-policy": "no-referrer" });
    return reply.redirect(answer.json().url, 303);
  });
  return path;
}
