import { once } from "node:events";
import { createServer } from "node:http";
import type { Registry } from "prom-client";
import { hostName, isLoopback } from "./loopback.ts";
import { releaseVersion } from "./release.ts";
import { isPoolName } from "./worker-pool.ts";

/** Options of a process's internal port. */
export interface InternalServerOptions {
  readonly host: string;
  readonly port: number;
  /** Returns whether the process accepts requests or sessions. */
  isReady(): boolean | Promise<boolean>;
  readonly metrics: Pick<Registry, "contentType" | "metrics">;
  /** Lines that `/healthz` adds to `ok` and the release. */
  readonly about?: string;
  /** Returns the response of `/scale/{name}`; undefined for an unknown name. */
  demandOf?(name: string): Promise<object | undefined>;
}

/**
 * Serves `/healthz` (liveness), `/readyz` (readiness), `/metrics` (Prometheus text format), and for autoscalers
 * `/scale/{pool}` in a control process and `/scale/gateway` in a gateway.
 */
export interface InternalServer {
  start(): Promise<void>;
  /** Stops listening and closes all connections. */
  stop(): Promise<void>;
}

const scalePrefix = "/scale/";

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly type?: string;
}

/** Creates the server without listening. */
export function createInternalServer({
  host,
  port,
  isReady,
  metrics,
  about = "",
  demandOf = async () => undefined,
}: InternalServerOptions): InternalServer {
  const answers: Readonly<Record<string, () => Answer | Promise<Answer>>> = {
    "/healthz": () => ({ status: 200, body: `ok\nrelease ${releaseVersion}\n${about}` }),
    "/readyz": async () =>
      (await isReady()) ? { status: 200, body: "ready\n" } : { status: 503, body: "not ready\n" },
    "/metrics": async () => ({ status: 200, type: metrics.contentType, body: await metrics.metrics() }),
  };

  async function scale(name: string): Promise<Answer> {
    const demand = isPoolName(name) ? await demandOf(name) : undefined;
    if (!demand)
      return { status: 404, body: "expected a pool that a worker has registered with, or `gateway` on a gateway\n" };
    return { status: 200, type: "application/json", body: JSON.stringify(demand) };
  }

  function answerTo(path: string, authority: string): Answer | Promise<Answer> {
    // Rejects other host names to prevent DNS rebinding by web pages.
    if (isLoopback(host) && !isLoopback(hostName(authority)))
      return { status: 400, body: "expected a loopback name in the Host header\n" };
    if (path.startsWith(scalePrefix)) return scale(path.slice(scalePrefix.length));
    return answers[path]?.() ?? { status: 404, body: "not found\n" };
  }

  const server = createServer({ requestTimeout: 10_000, headersTimeout: 5_000 }, async (request, response) => {
    try {
      const [path = ""] = (request.url ?? "").split("?", 1);
      const { status, body, type = "text/plain" } = await answerTo(path, request.headers.host ?? "");
      response.writeHead(status, { "content-type": type }).end(body);
    } catch {
      response.writeHead(500).end();
    }
  });
  return {
    async start() {
      server.listen(port, host);
      await once(server, "listening");
    },
    async stop() {
      if (!server.listening) return;
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
