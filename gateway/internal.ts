import { createServer, type Server } from "node:http";
import type { Registry } from "prom-client";

/** What the internal port tells of its process. */
export interface Insides {
  /** Says whether requests may be sent here. */
  isReady(): Promise<boolean>;
  readonly metrics: Registry;
}

/** Serves `/healthz` (the process answers), `/readyz` (send it requests) and `/metrics` (Prometheus text format). */
export function createInternalServer({ isReady, metrics }: Insides): Server {
  const answers: Record<string, () => Promise<{ status: number; type: string; body: string }>> = {
    "/healthz": async () => ({ status: 200, type: "text/plain", body: "ok\n" }),
    "/readyz": async () =>
      (await isReady())
        ? { status: 200, type: "text/plain", body: "ready\n" }
        : { status: 503, type: "text/plain", body: "not ready\n" },
    "/metrics": async () => ({ status: 200, type: metrics.contentType, body: await metrics.metrics() }),
  };
  return createServer({ requestTimeout: 10_000, headersTimeout: 5_000 }, async (request, response) => {
    const answer = answers[request.url?.split("?", 1)[0] ?? ""];
    try {
      const { status, type, body } = answer ? await answer() : { status: 404, type: "text/plain", body: "not found\n" };
      response.writeHead(status, { "content-type": type }).end(body);
    } catch {
      response.writeHead(500).end();
    }
  });
}
