import { spawn } from "node:child_process";
import dns from "node:dns/promises";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createServer, IncomingMessage, type RequestListener } from "node:http";
import { syncBuiltinESMExports } from "node:module";
import { connect, createServer as createTcpServer, Socket } from "node:net";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { aliveFrame, openEventStream } from "../../gateway/rest/event-stream.ts";
import { rawBody } from "../../gateway/rest/raw-body.ts";
import { testKey } from "../../src/agents/llm/key-test.ts";
import { createModels } from "../../src/agents/llm/models.ts";
import { asFetch } from "../../src/agents/llm/safe-models-fetch.ts";
import { callModel } from "../../src/agents/turns/model-call.ts";
import type { TurnRow } from "../../src/agents/turns/store.ts";
import type { Run, TurnParts } from "../../src/agents/turns/turn-parts.ts";
import { createProcessorCheck } from "../../src/billing/processor-check.ts";
import { httpTransport } from "../../src/billing/processors/transport.ts";
import type { Processors } from "../../src/billing/processors.ts";
import { createChannels } from "../../src/fleet/channels.ts";
import { createEmbeddedWorker } from "../../src/fleet/embedded-worker.ts";
import { createFleetServer } from "../../src/fleet/fleet-server.ts";
import type { WorkerRegistry } from "../../src/fleet/worker-registry.ts";
import {
  ControlService,
  HeartbeatRequestSchema,
  InputProgressSchema,
} from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { createHeldQueues } from "../../src/jobs/held-queues.ts";
import { attempt } from "../../src/jobs/job-attempt.ts";
import type { Call } from "../../src/kernel/call.ts";
import type { JobKind } from "../../src/kernel/job-kind.ts";
import { type ControlHandleParts, createControlHandle } from "../../src/live/control-handle.ts";
import { createSmtpClient } from "../../src/mail/smtp-client.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { callUnary } from "../../src/platform/grpc/grpc-codec.ts";
import { createIds } from "../../src/platform/ids.ts";
import { createLog } from "../../src/platform/log.ts";
import { SafeFetch } from "../../src/platform/outgoing/safe-fetch.ts";
import { ownAddresses, resolveName } from "../../src/platform/outgoing/target-resolution.ts";
import type { Database } from "../../src/platform/postgres/database.ts";
import { isAlive } from "../../src/platform/process-control.ts";
import { createRedis, type Redis } from "../../src/platform/redis/redis.ts";
import { createSupervisor } from "../../src/platform/supervisor.ts";
import type { Prices } from "../../src/platform/tier-prices.ts";
import { InputSender, type OpenInput } from "../../src/sessions/commands/input-sender.ts";
import type { SessionCaller } from "../../src/sessions/commands/session-caller.ts";
import { createControlHeartbeats } from "../../src/sessions/control/control-heartbeats.ts";
import { createControlNotifier } from "../../src/sessions/control/control-notifier.ts";
import { createParticipants } from "../../src/sessions/media/livekit.ts";
import { createDeliveries, type DeliveriesParts } from "../../src/webhooks/deliveries.ts";
import { createSender } from "../../src/webhooks/sender.ts";
import { LiveKitSignal, type SignalListener } from "../../workers/live/livekit-signal.ts";
import { makeDataDirectory, silentLog } from "../support/database.ts";
import { RedisServer } from "../support/redis-server.ts";
import { expectWait, fakeTime, pass, restoreTime, settle, type Wait } from "../support/wait.ts";
import { listen } from "../webhooks/receiver.ts";

let server: RedisServer;
beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server[Symbol.asyncDispose]());

const never = () => new Promise<never>(() => undefined);
const allow = ["127.0.0.1"];

/** Starts an HTTP server on loopback that does not respond by default. */
async function serve(answer: RequestListener = () => undefined): Promise<string> {
  const server = createServer(answer);
  server.keepAliveTimeout = 0;
  const port = await listen(server);
  onTestFinished(() => server.closeAllConnections());
  return `http://127.0.0.1:${port}`;
}

/** Accepts connections and sends no data. */
async function serveNothing(onConnection: (socket: Socket) => void = () => undefined): Promise<number> {
  const sockets: Socket[] = [];
  const server = createTcpServer((socket) => {
    sockets.push(socket.on("error", () => undefined));
    onConnection(socket.resume());
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  return listen(server);
}

function safeFetch(): SafeFetch {
  const fetch = new SafeFetch({ allow });
  onTestFinished(() => fetch[Symbol.dispose]());
  return fetch;
}

function deliver(url: string): Promise<unknown> {
  const sender = createSender({ config: { webhookAllow: allow } });
  onTestFinished(() => sender.stop());
  const event = { id: "evt_1", type: "session.completed", createdAt: new Date(), body: "{}" };
  // Cast: `createDeliveries` uses its parts only in jobs.
  const { timeout } = createDeliveries({ sender } as unknown as DeliveriesParts);
  return sender.send({ url, secrets: ["whsec_AAAA"], event }, AbortSignal.timeout(timeout));
}

/** Sends a request to a model and reads the whole response. */
async function askModel(url: string): Promise<unknown> {
  const answer = await asFetch(safeFetch())(url, { body: "{}" }).catch(() => undefined);
  return answer?.text().catch(() => undefined);
}

/** Connects to a Redis and then makes it hang. */
async function hangRedis(): Promise<Redis> {
  const redis = createRedis({ url: server.url, log: silentLog, registry: new Registry() });
  onTestFinished(() => {
    redis.stop();
    server.resume();
  });
  await redis.start();
  server.hang();
  return redis;
}

/** Starts an embedded worker with a script as its program. */
async function startEmbeddedWorker(script: string, onLog: () => void = () => undefined) {
  const dataDir = await makeDataDirectory();
  const program = join(dataDir, "worker.js");
  await writeFile(program, script);
  const worker = createEmbeddedWorker({
    dataDir,
    program,
    workerToken: "",
    env: {},
    leaseMs: 1_000,
    log: createLog("error", { write: onLog }),
    heartbeats: () => 0,
    onDeath: () => undefined,
  });
  onTestFinished(() => {
    vi.useRealTimers();
    return worker.stop();
  });
  await worker.start();
  return worker;
}

const nothing = () => undefined;

/** Starts the gRPC server of control processes, which answers no heartbeat, and a proxy before the server. */
async function startFleetServer() {
  const asked = Promise.withResolvers<void>();
  const heartbeat = () => {
    asked.resolve();
    return never();
  };
  // Cast: the test calls only this method.
  const registry = { heartbeat } as unknown as WorkerRegistry;
  const server = createFleetServer({ listen: "127.0.0.1:0", tls: undefined, registry, log: silentLog });
  await server.start();
  const toServer: Socket[] = [];
  const port = await serveNothing((socket) => {
    const other = connect(server.port, "127.0.0.1").on("error", nothing);
    toServer.push(other);
    socket.pipe(other).pipe(socket);
  });
  onTestFinished(() => {
    vi.useRealTimers();
    for (const socket of toServer) socket.destroy();
    return server.stop();
  });
  return {
    server,
    address: `127.0.0.1:${port}`,
    /** Sends a heartbeat. Resolves when the server has received it. */
    async call(client: Client, end: () => void = nothing): Promise<void> {
      onTestFinished(() => client.close());
      const request = create(HeartbeatRequestSchema);
      callUnary(client, ControlService.method.heartbeat, request, { metadata: new Metadata() }).catch(end);
      await asked.promise;
    },
    /** Calls `end` when the server closes its connection. */
    onClosed: (end: () => void) => void toServer[0]?.once("close", end),
    /** Loses all further data in both directions. */
    cut() {
      for (const socket of toServer) {
        socket.unpipe().resume();
        socket.write = () => true;
      }
    },
  };
}

/** Starts a sender of input, and sends a message. */
function sendInput(open: OpenInput): InputSender {
  const sender = new InputSender(open, { onReceipt: nothing, onFailed: nothing });
  sender.send({ events: [], sequence: 1 });
  return sender;
}

function spawnIdle(): number {
  const child = spawn("sleep", ["1000"], { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child.pid ?? 0;
}

const queue = { kind: "test", queue: "a", owner: null, claim: "1", failures: 0, first: undefined };

/** Starts a model's server. Returns a key for the server, and models that call the server. */
async function serveModel(answer: RequestListener) {
  const credential = {
    provider: "openai_compatible",
    apiKey: "good-key",
    baseUrl: `${await serve(answer)}/v1`,
  } as const;
  const models = createModels({ config: { llmAllow: allow, llmAddresses: {} } });
  onTestFinished(() => models.stop());
  return { models, credential };
}

/** Sends an e-mail through the server on a port of loopback. */
function sendMail(scheme: "smtp" | "smtps", port: number): Promise<void> {
  const smtpUrl = `${scheme}://127.0.0.1:${port}`;
  const client = createSmtpClient({ smtpUrl, mailFrom: "pilot@a.example", publicUrl: "http://a.example" });
  onTestFinished(() => client.close());
  return client.send("eml_1", { to: "ada@a.example", subject: "Hello", lines: [], kind: "security" });
}

// Needs its own process, because undici keeps one timer for all time limits, which another file may have faked.
const waits: Readonly<Record<string, Wait>> = {
  // First, because undici keeps one timer for all connection attempts, which a later test would find on the clock of an
  // earlier test.
  "a connection attempt whose request was aborted": {
    ms: 15_000,
    async begin(end) {
      const begun = Promise.withResolvers<void>();
      const port = await serveNothing((socket) => begun.resolve(void socket.once("close", end)));
      const calledOff = new AbortController();
      const times = { connect: 1_000, head: 1_000, silence: 1_000, whole: 1_000 };
      const request = { method: "GET", signal: calledOff.signal, times, maxBytes: 100 } as const;
      const sending = safeFetch().send(`https://127.0.0.1:${port}/`, request);
      await begun.promise;
      calledOff.abort();
      await sending.catch(() => undefined);
    },
  },
  "an event stream with no events": {
    ms: 15_000,
    async begin(end) {
      const opening = openEventStream(
        { next: never },
        () => ({}),
        () => ({}),
      );
      await pass(250);
      const frames = (await opening)[Symbol.asyncIterator]();
      await frames.next();
      frames.next().then(({ value }) => value === aliveFrame && end());
    },
  },
  "a raw body that stalls": {
    ms: 60_000,
    begin: (end) =>
      void rawBody(new IncomingMessage(new Socket()), 100, new AbortController().signal).next().catch(end),
  },
  "a delivery to an endpoint that does not answer": {
    ms: 15_000,
    begin: async (end) => void deliver(await serve()).then(end),
  },
  "a delivery to an endpoint that does not end its response": {
    ms: 2_000,
    async begin(end) {
      const answered = Promise.withResolvers<void>();
      deliver(await serve((_, response) => response.write("a", () => answered.resolve()))).then(end);
      await answered.promise;
    },
  },
  "a request to a model's server without a TLS handshake": {
    ms: 10_000,
    begin: async (end) => void askModel(`https://127.0.0.1:${await serveNothing()}/`).then(end),
  },
  "a model that does not answer": { ms: 120_000, begin: async (end) => void askModel(await serve()).then(end) },
  "a model that stops responding": {
    ms: 60_000,
    async begin(end) {
      const answered = Promise.withResolvers<void>();
      askModel(await serve((_, response) => response.write("a", () => answered.resolve()))).then(end);
      await answered.promise;
    },
  },
  "a model that never ends its response": {
    ms: 600_000,
    async begin(end) {
      const url = await serve((_, response) => void setInterval(() => response.write("a"), 15_000));
      askModel(url).then(end);
    },
  },
  "a media server without a WebSocket handshake": {
    ms: 5_000,
    async begin(end) {
      const url = `ws://127.0.0.1:${await serveNothing()}`;
      LiveKitSignal.connect(url, "token", {} as SignalListener).catch(end);
    },
  },
  "a test of a key whose provider does not answer": {
    ms: 30_000,
    // The request has its own limit of 120 s.
    slack: 10_000,
    async begin(end) {
      const asked = Promise.withResolvers<void>();
      const { models, credential } = await serveModel(() => asked.resolve());
      testKey(models, credential, "own", new AbortController().signal).then(end);
      await asked.promise;
    },
  },
  // The pauses of 0.5, 1, 2, 4, 8, 15 and 15 s fit in a minute.
  "a turn whose provider is busy": {
    ms: 45_500,
    async begin(end) {
      const asked = Promise.withResolvers<void>();
      const { models, credential } = await serveModel((_, response) => {
        response.writeHead(503).end();
        asked.resolve();
      });
      // Casts: a call that fails uses only these members.
      const parts = { config: {}, models } as unknown as TurnParts;
      const turn = { credential: "byok", model: "own" } as unknown as TurnRow;
      const run = { signal: new AbortController().signal } as unknown as Run;
      const request = { system: "", messages: [{ role: "user" as const, content: "Hi" }], tools: {} };
      callModel(parts, turn, run, request, Promise.resolve(credential)).then(end);
      await asked.promise;
    },
  },
  "a mail server without a TLS handshake": {
    ms: 10_000,
    begin: async (end) => void sendMail("smtps", await serveNothing()).catch(end),
  },
  "a mail server that does not greet": {
    ms: 10_000,
    begin: async (end) => void sendMail("smtp", await serveNothing()).catch(end),
  },
  "a mail server that stops responding": {
    ms: 20_000,
    begin: async (end) =>
      void sendMail("smtp", await serveNothing((socket) => socket.write("220 a.example\r\n"))).catch(end),
  },
  "a health check of a payment processor that does not answer": {
    ms: 2_500,
    begin(end) {
      // Cast: the check uses only these members.
      const crypto = { greenfield: { rate: never }, currencies: [] } as unknown as Processors["crypto"];
      const check = createProcessorCheck({ crypto } as Processors, { currency: "eur" } as Prices);
      check?.check(new AbortController().signal).then(end);
    },
  },
  "a payment processor that does not answer": {
    ms: 15_000,
    begin: async (end) =>
      void httpTransport(await serve())({ method: "GET", path: "/", headers: {}, body: "" }).catch(end),
  },
  "an idle connection": {
    ms: 4_000,
    async begin(end) {
      const times = { connect: 100_000, head: 100_000, silence: 100_000, whole: 100_000 };
      const url = await serve((request, response) => {
        request.socket.once("close", end);
        response.end("a");
      });
      const signal = new AbortController().signal;
      const { body } = await safeFetch().send(url, { method: "GET", signal, times, maxBytes: 100 });
      await Array.fromAsync(body);
    },
  },
  "a name that the system does not resolve": {
    ms: 10_000,
    begin(end) {
      vi.spyOn(dns, "lookup").mockImplementation(never);
      syncBuiltinESMExports();
      onTestFinished(syncBuiltinESMExports);
      resolveName("silent.example").catch(end);
    },
  },
  "a list of this machine's addresses": {
    ms: 5_000,
    begin(end) {
      const list = ownAddresses();
      const first = list();
      setInterval(() => list() !== first && end(), 100);
    },
  },
  "a person's second heartbeat": {
    ms: 5_000,
    begin(end) {
      const named = vi.fn(async () => []);
      // Cast: the test implements only the members that are used.
      const db = { named } as unknown as Database;
      const signs = createControlHeartbeats({ db, clock: systemClock, log: silentLog });
      onTestFinished(() => signs.stop());
      signs.note("ses_1", "anna", true);
      named.mockImplementation(async () => {
        end();
        return [];
      });
      signs.note("ses_1", "anna", true);
    },
  },
  "a lease of a queue that is not renewed": {
    ms: 7_000,
    begin(end) {
      const parts = { db: {} as Database, clock: systemClock, log: silentLog, gateway: () => 0 };
      const held = createHeldQueues(parts).add(queue, performance.now());
      held.lease.addEventListener("abort", end);
    },
  },
  "the renewal of a queue's lease": {
    ms: 2_000,
    begin(end) {
      const named = async () => {
        end();
        return [];
      };
      // Cast: the test implements only the members that are used.
      const parts = { db: { named } as unknown as Database, clock: systemClock, log: silentLog, gateway: () => 0 };
      const queues = createHeldQueues(parts);
      onTestFinished(() => queues.stop());
      queues.add(queue, performance.now());
      queues.start();
    },
  },
  "a notification of a worker of a session's control": {
    ms: 5_000,
    begin(end) {
      const notifyControl = ({ signal }: SessionCaller) => {
        signal.addEventListener("abort", end);
        return never();
      };
      const kind = createControlNotifier({ sessions: { notifyControl }, ids: createIds(systemClock) });
      const parts = { db: {} as Database, clock: systemClock, log: silentLog, gateway: () => 0 };
      const held = createHeldQueues(parts).add(queue, performance.now());
      const data = { sessionId: "ses_1", accountId: "acc_1" };
      const job = { id: "1", data, attempts: 0, due_at: new Date(), order_key: null };
      const lost = new AbortController().signal;
      void attempt(held, job, kind as JobKind<unknown>, { ...parts, lost, limitWrites: never });
    },
  },
  "a Redis without a TLS handshake": {
    ms: 2_000,
    async begin(end) {
      const port = await serveNothing((socket) => void socket.once("close", end));
      const redis = createRedis({ url: `rediss://127.0.0.1:${port}`, log: silentLog, registry: new Registry() });
      onTestFinished(() => redis.stop());
      redis.start();
    },
  },
  "a start without Redis": {
    ms: 2_000,
    async begin(end) {
      const url = `redis://127.0.0.1:${await serveNothing()}`;
      const redis = createRedis({ url, log: silentLog, registry: new Registry() });
      onTestFinished(() => redis.stop());
      redis.start().then(end);
    },
  },
  "an idle Redis that hangs": {
    ms: 5_000,
    async begin(end) {
      const redis = await hangRedis();
      setInterval(() => redis.isUp || end(), 50);
    },
  },
  // A connection without data for 5 s is replaced.
  "a Redis that responds again after an outage": {
    ms: 1_000,
    slack: 500,
    async begin(end) {
      const redis = await hangRedis();
      while (redis.isUp) await Promise.all([redis.run("bus", (client) => client.echo("")), pass(50)]);
      server.resume();
      setInterval(() => redis.isUp && end(), 50);
    },
  },
  "an embedded worker that does not start": {
    ms: 60_000,
    begin: async (end) => void (await startEmbeddedWorker("setInterval(() => undefined, 1_000)", end)),
  },
  "an embedded worker that ignores SIGTERM": {
    ms: 10_000,
    async begin(end) {
      const marker = join(await makeDataDirectory(), "ready");
      const script = `process.on("SIGTERM", () => undefined);
        require("node:fs").writeFileSync(${JSON.stringify(marker)}, "");
        setInterval(() => undefined, 1_000);`;
      const worker = await startEmbeddedWorker(script);
      await settle(() => existsSync(marker), 10_000);
      worker.stop().then(end);
    },
  },
  "a worker whose machine is lost": {
    ms: 10_000,
    slack: 2_000,
    async begin(end) {
      const { address, call, cut } = await startFleetServer();
      const channels = createChannels(undefined, silentLog);
      await call(channels.to({ id: "worker", address, secretHash: Buffer.alloc(0) }).client, end);
      cut();
    },
  },
  "a connection from a machine that is lost": {
    ms: 80_000,
    slack: 10_000,
    async begin(end) {
      const { address, call, cut, onClosed } = await startFleetServer();
      await call(new Client(address, credentials.createInsecure()));
      onClosed(end);
      cut();
    },
  },
  "a connection of a worker without calls": {
    ms: 300_000,
    async begin(end) {
      const { address, onClosed } = await startFleetServer();
      const client = new Client(address, credentials.createInsecure());
      onTestFinished(() => client.close());
      await new Promise((resolve) => client.waitForReady(Number.POSITIVE_INFINITY, resolve));
      onClosed(end);
    },
  },
  "calls of workers when a control process stops": {
    ms: 2_000,
    async begin(end) {
      const { server, address, call } = await startFleetServer();
      await call(new Client(address, credentials.createInsecure()));
      server.stop().then(end);
    },
  },
  "a media server that does not answer": {
    ms: 3_000,
    async begin(end) {
      const url = (await serve()).replace("http", "ws");
      createParticipants({ url, key: "key", secret: "secret" })("ses_1", "vwr_1").admit().catch(end);
    },
  },
  "a sender of input that closes before the worker answers": {
    ms: 2_000,
    async begin(end) {
      const sender = sendInput(async function* () {
        yield await never();
      });
      sender.close().then(end);
    },
  },
  "a call of a sender without input": {
    ms: 30_000,
    begin(end) {
      sendInput(async function* (_streamId, parts) {
        for await (const { number } of parts) yield create(InputProgressSchema, { number });
        end();
      });
    },
  },
  "a viewer's command behind input that the worker does not process": {
    ms: 1_000,
    begin(end) {
      const sessions = { openInput: () => ({ drained: never }), readSelection: async () => void end() };
      // Casts: the test implements only the members that are used.
      const call = { principal: { mayControl: true } } as unknown as Call;
      const listener = { sessionId: "ses_1", clientId: "anna", onReceipt: nothing, onFailed: nothing };
      const handle = createControlHandle({ sessions } as unknown as ControlHandleParts, call, listener);
      handle.copy().catch(nothing);
    },
  },
};

test.each(Object.entries(waits))("the limit for %s is observed, within tolerance", (_, wait) => expectWait(wait));

test("a dead process is restarted at once only if it had run for long", async () => {
  fakeTime();
  onTestFinished(restoreTime);
  const launches: number[] = [];
  const launch = async () => {
    launches.push(performance.now());
    return spawnIdle();
  };
  const program = { name: "the program", logFile: "", findSurvivor: async () => undefined, launch, endingSteps: [] };
  const supervisor = createSupervisor(program, silentLog);
  onTestFinished(() => supervisor.leave());
  await supervisor.start();
  /** Kills the process. Returns the milliseconds until its replacement starts. */
  async function restart(): Promise<number> {
    const count = launches.length;
    const since = performance.now();
    const { pid = 0 } = supervisor;
    process.kill(pid, "SIGKILL");
    await settle(() => !isAlive(pid));
    while (launches.length === count) await pass(500);
    return (launches.at(-1) ?? 0) - since;
  }
  for (let death = 0; death < 7; death += 1) await restart();
  await pass(15_000);
  expect(await restart()).toBeGreaterThan(5_000);
  await pass(60_000);
  expect(await restart()).toBeLessThan(2_500);
});
