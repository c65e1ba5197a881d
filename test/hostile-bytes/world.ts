import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, type NetConnectOpts } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import type { TlsScene } from "../cdp-proxy/tls-guide.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import type { DeployedProcess } from "../support/deployed-process.ts";
import { Deployment } from "../support/deployment.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { freePorts } from "../support/free-port.ts";
import { findPid } from "../support/processes.ts";
import { restClient } from "../support/rest.ts";
import { startService } from "../support/service.ts";
import type { Facts } from "./http1-cases.ts";

/** Port or socket that accepts connections. */
export interface EntryPoint {
  readonly name: string;
  /** Protocol of a plain request. */
  readonly speaks: "http" | "grpc" | "internal" | "relay" | "tls";
  open(): Duplex;
}

/** Process that must survive all cases. */
export interface Part {
  readonly name: string;
  pid(): number | undefined;
  output(): string;
  /** Kills the process if it still runs, and starts it again. */
  restart(): Promise<void>;
  /** URL of the metrics endpoint. */
  readonly metrics?: string;
}

/** Processes and their ports. */
export interface World extends AsyncDisposable {
  readonly entryPoints: readonly EntryPoint[];
  readonly parts: readonly Part[];
  readonly facts: Facts;
  /** Returns the status of the session. */
  sessionStatus(): Promise<string>;
  /** Creates a new session if the current one has ended. */
  renewSession(): Promise<void>;
}

let opened = 0;

/** Connects from a new loopback address each time, so that limits per address are not reached. */
function openTcp(port: number): Duplex {
  opened += 1;
  const localAddress = `127.${1 + ((opened >> 14) % 100)}.${(opened >> 7) & 127}.${1 + (opened & 127)}`;
  return connect({ port, host: "127.0.0.1", localAddress, noDelay: true });
}

function openTls(port: number): Duplex {
  const socket = openTcp(port);
  socket.on("error", () => undefined);
  return connectTls({ socket, rejectUnauthorized: false, ALPNProtocols: ["h2", "http/1.1"] });
}

const tcp = (name: string, speaks: EntryPoint["speaks"], port: number): EntryPoint => ({
  name,
  speaks,
  open: () => openTcp(port),
});
const portOf = (address: string): number => Number(address.split(":").at(-1));

/** Records the first bytes that a TLS client sends. */
async function recordClientHello(): Promise<Buffer> {
  const { promise, resolve } = Promise.withResolvers<Buffer>();
  const socket = new Duplex({ read: () => undefined, write: (bytes: Buffer) => resolve(bytes) });
  const client = connectTls({ socket, ALPNProtocols: ["h2"] }).on("error", () => undefined);
  const hello = await promise;
  client.destroy();
  return hello;
}

interface RelayPorts extends Record<"direct" | "http" | "socks5", number> {
  readonly site: number;
}

/** Starts session relays in a separate process, without the supervision of a worker. */
async function startRelays() {
  const script = new URL("relay-process.ts", import.meta.url).pathname;
  let output = "";
  async function start() {
    const child = spawn(process.execPath, ["--no-warnings", script], { stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (text: Buffer) => (output += text));
    const [line] = (await once(createInterface(child.stdout), "line")) as [string];
    return { child, ports: JSON.parse(line) as RelayPorts };
  }
  let running = await start();
  const stop = () => running.child.kill("SIGKILL");
  const part: Part = {
    name: "relays",
    pid: () => running.child.pid,
    output: () => output,
    async restart() {
      stop();
      running = await start();
    },
  };
  const entryPoints = (["direct", "http", "socks5"] as const).map((way): EntryPoint => {
    return { name: `relay ${way}`, speaks: "relay", open: () => openTcp(running.ports[way]) };
  });
  return { part, entryPoints, stop, site: () => `127.0.0.1:${running.ports.site}` };
}

/** Creates a session for the cases. */
async function keepSession(url: string, key: string) {
  const rest = restClient({ url, key });
  async function create(): Promise<string> {
    let answer = await rest("/v1/sessions");
    // A worker that has just started may not be registered yet.
    const isCreated = async () => {
      answer = await rest("/v1/sessions", { timeout_seconds: 7_200, idle_timeout_seconds: 7_200 });
      return answer.status === 201;
    };
    if (await waitUntil(isCreated, { timeout: 30_000, every: 250 })) return answer.body.id;
    throw new Error(`the session was not created: ${JSON.stringify(answer.body)}`);
  }
  const kept = {
    id: await create(),
    async status() {
      const { status, body } = await rest(`/v1/sessions/${kept.id}`);
      return status === 200 ? `${body.status} ${body.ended_reason ?? ""}`.trim() : `answered with ${status}`;
    },
    async renew() {
      if ((await kept.status()) !== "live") kept.id = await create();
    },
  };
  return kept;
}

function partOf(name: string, deployed: DeployedProcess & { readonly internalUrl: string }): Part {
  return {
    name,
    pid: () => deployed.pid,
    output: () => deployed.output,
    metrics: `${deployed.internalUrl}/metrics`,
    async restart() {
      await deployed.kill();
      await deployed.start();
    },
  };
}

/** Starts two gateways, one of them with TLS, a worker and relays. */
export async function startDeployed(): Promise<World & { readonly tls: TlsScene }> {
  await using started = new AsyncDisposableStack();
  const files = started.use(new CertificateAuthority()).issue("localhost");
  const site = await new FixtureSite().start();
  started.defer(() => site.stop());
  const ports = await freePorts("worker", "proxy");
  const workerEnv = { WORKER_LISTEN: `127.0.0.1:${ports.worker}`, WARM_BROWSERS: "0", EGRESS_ALLOW: site.host };
  const proxiedUrl = `https://localhost:${ports.proxy}`;
  const gateways = [{ PUBLIC_URL: proxiedUrl }, { TLS_CERT: files.cert, TLS_KEY: files.key }];
  const deployment = started.use(await Deployment.start({ gateways, workers: 1, slots: 3, workerEnv }));
  const relays = await startRelays();
  started.defer(() => void relays.stop());
  const clientHello = await recordClientHello();
  const [plain, secure, worker] = [deployment.gateway(0), deployment.gateway(1), deployment.worker(0)];
  const { key } = deployment;
  const sessions = await keepSession(plain.url, key);
  const all = started.move();
  const securePorts = { PORT: portOf(secure.url), GRPC_PORT: portOf(secure.grpcAddress) };
  const secureUrl = `https://localhost:${securePorts.PORT}`;
  return {
    tls: { secureUrl, proxiedUrl, proxiedPort: portOf(plain.url), files, key, site },
    entryPoints: [
      tcp("PORT", "http", portOf(plain.url)),
      tcp("GRPC_PORT", "grpc", portOf(plain.grpcAddress)),
      tcp("INTERNAL_PORT", "internal", portOf(plain.internalUrl)),
      tcp("FLEET_PORT", "grpc", portOf(deployment.control(0).fleetAddress)),
      tcp("WORKER_LISTEN", "grpc", ports.worker),
      tcp("INTERNAL_PORT of the worker", "internal", portOf(worker.internalUrl)),
      { name: "PORT over TLS", speaks: "http", open: () => openTls(securePorts.PORT) },
      { name: "GRPC_PORT over TLS", speaks: "grpc", open: () => openTls(securePorts.GRPC_PORT) },
      tcp("PORT below TLS", "tls", securePorts.PORT),
      tcp("GRPC_PORT below TLS", "tls", securePorts.GRPC_PORT),
      ...relays.entryPoints,
    ],
    parts: [
      partOf("control", deployment.control(0)),
      partOf("gateway", plain),
      partOf("gateway with TLS", secure),
      partOf("worker", worker),
      relays.part,
    ],
    get facts() {
      return { key, session: sessions.id, site: relays.site(), clientHello };
    },
    sessionStatus: sessions.status,
    renewSession: sessions.renew,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Starts a service like `npm start`. The worker and the gateway listen on Unix sockets. */
export async function startEmbedded(): Promise<World> {
  let [service, clientHello] = await Promise.all([startService(), recordClientHello()]);
  const { key, url, grpcAddress, internalUrl, dataDir } = service;
  await using started = new AsyncDisposableStack();
  started.defer(() => service.stop());
  const sessions = await keepSession(url, key);
  const all = started.move();
  // The demo's port changes with each start.
  const demoPort = () => Number(/http:\/\/127\.0\.0\.1:(\d+)\//.exec(service.output().replaceAll(`${url}/`, ""))?.[1]);
  const unix = (name: string, file: string): EntryPoint => {
    const options: NetConnectOpts = { path: join(dataDir, file) };
    return { name, speaks: "grpc", open: () => connect(options) };
  };
  return {
    entryPoints: [
      tcp("PORT", "http", portOf(url)),
      tcp("GRPC_PORT", "grpc", portOf(grpcAddress)),
      tcp("INTERNAL_PORT", "internal", portOf(internalUrl)),
      { name: "the demo's port", speaks: "internal", open: () => openTcp(demoPort()) },
      unix("the control process's socket", "fleet.sock"),
      unix("the worker's socket", "worker.sock"),
    ],
    parts: [
      {
        name: "supervisor",
        pid: () => service.supervisor.pid,
        output: () => service.output(),
        metrics: `${internalUrl}/metrics`,
        async restart() {
          if (service.supervisor.kill("SIGKILL")) await once(service.supervisor, "exit");
          service = await service.restart();
        },
      },
      ...(["control", "gateway", "worker"] as const).map((name) => ({
        name,
        pid: () => findPid(service.dataDir, name),
        output: () => "",
        // The supervisor restarts these processes.
        restart: async () => undefined,
      })),
    ],
    get facts() {
      return { key, session: sessions.id, site: `127.0.0.1:${demoPort()}`, clientHello };
    },
    sessionStatus: sessions.status,
    renewSession: sessions.renew,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
