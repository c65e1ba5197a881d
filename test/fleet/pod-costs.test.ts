import { mkdir, readFile, writeFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { createServer } from "node:https";
import { json } from "node:stream/consumers";
import { create } from "@bufbuild/protobuf";
import { expect, onTestFinished, test } from "vitest";
import { createPodCosts } from "../../src/fleet/pod-costs.ts";
import { CreateSessionRequestSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { createLog } from "../../src/platform/log.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { makeDataDirectory } from "../support/database.ts";
import { freePorts } from "../support/free-port.ts";
import { startSessionsApp } from "../support/sessions-app.ts";

const annotation = "controller.kubernetes.io/pod-deletion-cost";

/** A pod as the API server lists it. */
interface ListedPod {
  readonly metadata: { readonly name: string; readonly annotations: Record<string, string> };
  readonly status: { readonly podIP: string };
}

/** Starts an API server of Kubernetes with pods at addresses, two in each page. */
async function startApiServer(addresses: readonly string[]) {
  const authority = new CertificateAuthority();
  onTestFinished(() => authority[Symbol.dispose]());
  const files = authority.issue("kubernetes");
  const directory = await makeDataDirectory();
  await mkdir(directory, { recursive: true });
  await writeFile(`${directory}/ca.crt`, await readFile(files.ca));
  await writeFile(`${directory}/token`, "the token\n");
  const pods = addresses.map(
    (podIP, index): ListedPod => ({ metadata: { name: `pod-${index}`, annotations: {} }, status: { podIP } }),
  );
  const state = { pods, writes: [] as string[], answers: "well" as "well" | "forbidden" | "nothing" };
  const answer = async (request: IncomingMessage) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "https://kubernetes");
    if (request.headers.authorization !== "Bearer the token") return [401, {}] as const;
    if (state.answers === "forbidden") return [403, { message: "no rights" }] as const;
    if (request.method === "GET" && pathname === "/api/v1/namespaces/browsers-workers/pods") {
      const from = Number(searchParams.get("continue"));
      const next = from + 2 < pods.length ? String(from + 2) : "";
      return [200, { items: pods.slice(from, from + 2), metadata: { continue: next } }] as const;
    }
    const pod = pods.find(({ metadata }) => pathname.endsWith(`/pods/${metadata.name}`));
    const patch = (await json(request)) as { metadata: ListedPod["metadata"] };
    if (!pod || request.headers["content-type"] !== "application/merge-patch+json") return [404, {}] as const;
    Object.assign(pod.metadata.annotations, patch.metadata.annotations);
    state.writes.push(`${pod.metadata.name} ${pod.metadata.annotations[annotation]}`);
    return [200, pod] as const;
  };
  const server = createServer(
    { cert: await readFile(files.cert), key: await readFile(files.key) },
    (request, response) => {
      if (state.answers === "nothing") return;
      void answer(request).then(([status, body]) => response.writeHead(status).end(JSON.stringify(body)));
    },
  );
  const { PORT: port } = await freePorts("PORT");
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { state, access: { host: "127.0.0.1", port, directory } };
}

async function setUp(addresses: readonly string[]) {
  const running = await startSessionsApp({ QUEUE_MS: "0" });
  onTestFinished(() => running[Symbol.asyncDispose]());
  const { state, access } = await startApiServer(addresses);
  const lines: string[] = [];
  const log = createLog("warn", { write: (line) => void lines.push(JSON.parse(line).msg) });
  const { db, clock } = running.app;
  return { running, state, lines, job: createPodCosts({ access, namespace: "browsers-workers", db, clock, log }) };
}

test("sets the deletion cost of workers' pods in steps, only where it changes", async () => {
  const { running, state, job } = await setUp(["10.0.0.1", "10.0.0.2", "10.0.0.3", "fd00::4"]);
  const ids: string[] = [];
  for (const address of ["10.0.0.1:8090", "10.0.0.2:8090", "[fd00::4]:8090"]) {
    const worker = await running.worker({ slots: 20 });
    worker.fallSilent();
    // Pressure keeps new sessions off this worker.
    await worker.heartbeat({ closedBy: "memory" });
    await running.app.db.sql.updateTable("workers").set({ address }).where("id", "=", worker.id).execute();
    ids.push(worker.id);
  }
  const lease = { lease_until: new Date(running.app.clock.now() + 3_600_000) };
  await running.app.db.sql.updateTable("worker_leases").set(lease).execute();
  await job.runNow();
  expect(state.writes).toEqual([]);
  await running.worker({ slots: 20 });
  const call = await running.caller();
  /** Adds sessions that hold slots of the last worker. */
  async function hold(count: number): Promise<void> {
    for (let each = 0; each < count; each += 1)
      await running.sessions.create(call(), create(CreateSessionRequestSchema, {}));
    const moved = { worker_id: ids[2] ?? "" };
    await running.app.db.sql.updateTable("sessions").set(moved).where("slot_held", "=", true).execute();
  }
  await hold(3);
  await job.runNow();
  await hold(4);
  await job.runNow();
  expect(state.writes).toEqual(["pod-3 1"]);
  await hold(2);
  await job.runNow();
  expect(state.writes).toEqual(["pod-3 1", "pod-3 9"]);
  await running.app.db.sql.updateTable("sessions").set({ slot_held: false }).execute();
  await job.runNow();
  expect(state.writes).toEqual(["pod-3 1", "pod-3 9", "pod-3 0"]);
});

test("logs once that the API server refuses or does not respond within 5 s, and continues afterwards", async () => {
  const { state, lines, job } = await setUp(["10.0.0.1"]);
  state.answers = "forbidden";
  await job.runNow();
  state.answers = "nothing";
  const began = performance.now();
  await job.runNow();
  expect(performance.now() - began).toBeGreaterThan(4_000);
  expect(performance.now() - began).toBeLessThan(30_000);
  expect(lines).toEqual(["failed to set deletion costs of workers' pods"]);
  state.answers = "well";
  await job.runNow();
  state.answers = "forbidden";
  await job.runNow();
  expect(lines).toHaveLength(2);
}, 60_000);
