// One side of the path bench in its own process: `gateway` without browsers, or `bare` Fastify. Sends its address to
// its parent, and its CPU time since the start in response to every message.
import { rm } from "node:fs/promises";
import { create } from "@bufbuild/protobuf";
import { fastify } from "fastify";
import { Gateway } from "../../gateway/gateway.ts";
import { createApp } from "../../src/app/app.ts";
import { NavigateResponseSchema, SessionService } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { serve } from "../../src/kernel/registry.ts";
import type { Limits } from "../../src/limits/limits.ts";
import { readConfig } from "../../src/platform/config.ts";
import { createSessionService } from "../../src/sessions/service.ts";
import { makeDataDirectory, silentLog } from "../../test/support/database.ts";
import { freePorts } from "../../test/support/free-port.ts";

/** Address and key of a side. */
export interface ServerReady {
  readonly url: string;
  readonly key: string;
}

/** Bucket size above the use of all rounds, so that requests draw tokens as usual and never find the bucket empty. */
const room = { capacity: 1e9, refillPerSecond: 1e9 };

async function startGateway(): Promise<ServerReady> {
  const dataDir = await makeDataDirectory();
  const ports = await freePorts("PORT", "GRPC_PORT", "INTERNAL_PORT");
  const variables = Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)]));
  const config = readConfig({ DATA_DIR: dataDir, ...variables });
  const app = createApp(config, { log: silentLog, workerProgram: null });
  const sessions = serve(SessionService, {
    ...createSessionService(app),
    navigate: async (_call, { url }) =>
      create(NavigateResponseSchema, { url, title: "Order", httpStatus: 200, durationMs: 12 }),
  });
  const bucket: Limits["bucket"] = (...named) => ({ ...app.limits.bucket(...named), ...room });
  const roomy = { ...app, limits: { ...app.limits, bucket } };
  const gateway = new Gateway(roomy, { services: [sessions] });
  process.once("disconnect", async () => {
    await gateway.stop();
    await app.stop();
    await rm(dataDir, { recursive: true, force: true });
  });
  await app.start();
  await gateway.start();
  return { url: `http://127.0.0.1:${ports.PORT}`, key: app.developerKey ?? "" };
}

async function startBare(): Promise<ServerReady> {
  const server = fastify();
  server.post<{ Body: { url: string } }>("/v1/sessions/:id/navigate", async ({ body }) => ({
    url: body.url,
    title: "Order",
    http_status: 200,
    duration_ms: 12,
  }));
  process.once("disconnect", () => void server.close());
  return { url: await server.listen({ host: "127.0.0.1", port: 0 }), key: "" };
}

process.on("message", () => process.send?.(process.cpuUsage()));
const ready = await (process.argv[2] === "gateway" ? startGateway() : startBare());
process.send?.(ready);
