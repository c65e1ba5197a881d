import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { create } from "@bufbuild/protobuf";
import type { FastifyInstance } from "fastify";
import { createAccountExtraction } from "../src/agents/turns/account-extraction.ts";
import type { App } from "../src/app/app.ts";
import { CreateSessionRequestSchema } from "../src/gen/pilothouse/v1/session_pb.ts";
import type { ServedService } from "../src/kernel/registry.ts";
import { CertificateFiles } from "../src/platform/certificate-files.ts";
import type { TlsFiles } from "../src/platform/config.ts";
import { createInternalServer, type InternalServer } from "../src/platform/internal-server.ts";
import { ruleFaults } from "../src/platform/validation.ts";
import { createAccessLog } from "./access-log.ts";
import { type CallDispatcher, createCallDispatcher } from "./call-dispatcher.ts";
import { ClientBuffers } from "./client-buffers.ts";
import { createConnectionCap } from "./connection-cap.ts";
import { type ConsoleFiles, readConsole } from "./console/console-files.ts";
import { mountConsoleSession } from "./console/console-session.ts";
import { type FirstRunOffer, mountFirstRun } from "./console/first-run-page.ts";
import { mountConsole } from "./console/mount-console.ts";
import { createCors } from "./cors.ts";
import { type HttpHandler, SharedPort } from "./listen.ts";
import { createMethodCalls } from "./mcp/method-calls.ts";
import { type CreateMcpServer, mcpRoute, mountMcp } from "./mcp/mount-mcp.ts";
import type { McpClient } from "./mcp/tool-server.ts";
import { ownHosts } from "./own-hosts.ts";
import { type DemoSession, mountDemoSession } from "./pages/demo-session.ts";
import { mountOutbox } from "./pages/dev-mail.ts";
import { createDocuments } from "./pages/documents.ts";
import { mountLinkPages } from "./pages/link-pages.ts";
import { mountLivePage } from "./pages/live-page.ts";
import { mountMoneyPages } from "./pages/money-pages.ts";
import { errorsPathOf, mountPages } from "./pages/pages.ts";
import { mountStatusPage } from "./pages/status-page.ts";
import { blockListOf, createPeers } from "./peer.ts";
import { Problems } from "./problems.ts";
import { createRequestFilter, refuseBroken } from "./request-filter.ts";
import { createRestServer } from "./rest/fastify-server.ts";
import { connectHandler } from "./rpc/connect.ts";
import { GrpcServer } from "./rpc/grpc-server.ts";
import { SlowBodies } from "./slow-bodies.ts";
import { type TimeLimits, timeLimits } from "./time-limits.ts";
import { peerOf, type TransportParts } from "./transport-parts.ts";
import { WebSockets } from "./ws/websockets.ts";

// Milliseconds that running calls have to finish when the gateway stops.
const graceMs = 30_000;

/** Options of a gateway in tests or under a supervisor. */
export interface GatewayOptions {
  /** Services to serve. Default: all. */
  readonly services?: readonly ServedService[];
  /** Shorter limits, for tests. */
  readonly limits?: TimeLimits;
  /** Creates the MCP server of a request in tests. If the function returns undefined, the product's server is used. */
  readonly createMcpServer?: (client: McpClient) => ReturnType<CreateMcpServer> | undefined;
  /** Whether a supervisor serves health and metrics, so that the gateway opens no internal port. */
  readonly isSupervised?: boolean;
}

/** The public ports and the internal port of a gateway. */
export class Gateway {
  readonly #app: App;
  readonly #services: readonly ServedService[];
  readonly #dispatcher: CallDispatcher;
  readonly #transport: TransportParts;
  readonly #rest: FastifyInstance;
  readonly #port: SharedPort;
  readonly #grpc: GrpcServer;
  readonly #webSockets: WebSockets;
  readonly #internal: InternalServer | undefined;
  readonly #certificate: CertificateFiles<TlsFiles> | undefined;
  readonly #mcp: ReturnType<typeof mountMcp>;
  readonly #stopping = new AbortController();
  readonly #shutdownDelayMs: number;
  #demoUrl: string | undefined;
  #serving = false;

  constructor(app: App, options: GatewayOptions = {}) {
    const { services = app.services, limits = timeLimits, isSupervised = false } = options;
    const { clock, config, ids, log, metrics } = app;
    const { host } = config;
    // The delay serves no purpose if there is no other gateway (supervised) or no client (background jobs only).
    this.#shutdownDelayMs = isSupervised || config.role === "jobs" ? 0 : config.shutdownDelayMs;
    this.#app = app;
    this.#services = services;
    const buffers = new ClientBuffers({ budget: config.clientBufferBytes, clock, log, registry: metrics });
    this.#dispatcher = createCallDispatcher(app, services, buffers);
    const trustedProxies = blockListOf(config.trustedProxies);
    const requestIdOf = (request: IncomingMessage): string => peerOf(request, transport).requestId;
    const accessLog = config.accessLog ? createAccessLog({ clock, log, requestIdOf }) : undefined;
    const transport: TransportParts = {
      dispatcher: this.#dispatcher,
      problems: new Problems(config.errorsBase, log),
      resolvePeer: createPeers(trustedProxies, () => ids.next("req")),
      bodies: new SlowBodies(limits.request),
      buffers,
      accessLog,
    };
    this.#transport = transport;
    this.#certificate = config.tls && new CertificateFiles(config.tls, { clock, log });
    const accept = createConnectionCap(trustedProxies);
    const listening = { host, tls: this.#certificate?.current, limits, log, accept };
    const cors = createCors(config.corsOrigins);
    const isAdmitted = createRequestFilter({ transport, cors, isOwnHost: ownHosts(config) });
    this.#rest = createRestServer(services, transport, [mcpRoute]);
    const loadServer = async (): Promise<CreateMcpServer> => {
      const createOurs = await this.#loadToolServer();
      return (client) => options.createMcpServer?.(client) ?? createOurs(client);
    };
    this.#mcp = mountMcp(this.#rest, { transport, config, cors, log, loadServer });
    const rest: HttpHandler = (request, response) => this.#rest.routing(request, response);
    const connect = connectHandler(services, transport, rest);
    this.#webSockets = new WebSockets(services, { transport, cors, registry: metrics, next: rest });
    this.#grpc = new GrpcServer(services, transport, { ...listening, port: config.grpcPort });
    this.#port = new SharedPort({
      ...listening,
      port: config.port,
      bodies: transport.bodies,
      onRequest(request, response) {
        accessLog?.onRequest(request, response);
        if (isAdmitted(request, response)) connect(request, response);
      },
      onUpgrade: (request, response, head) => {
        accessLog?.onUpgrade(request, response);
        if (isAdmitted(request, response)) void this.#webSockets.upgrade(request, response, head);
      },
      onClientError: refuseBroken(transport),
    });
    const demandOf = async (name: string) =>
      name === "gateway" ? { open_streams: this.#dispatcher.openStreams } : undefined;
    const internal = { host, port: config.internalPort, isReady: () => this.isReady(), metrics, demandOf };
    this.#internal = isSupervised ? undefined : createInternalServer(internal);
  }

  /** Returns whether the gateway accepts requests. */
  async isReady(): Promise<boolean> {
    return this.#serving && (await this.#app.isReady());
  }

  /** Mounts the page that starts the demo session, and returns its path. Call before `start`. */
  offerDemo(demo: DemoSession): string {
    this.#demoUrl = demo.demoUrl;
    return mountDemoSession(this.#rest, demo);
  }

  /** Mounts the endpoint that creates the first owner. Call before `start`. */
  offerFirstRun(offer: FirstRunOffer): void {
    mountFirstRun(this.#rest, this.#consoleParts, offer);
  }

  /** Listens on all ports, or only on the internal port if the process runs only background jobs. */
  async start(): Promise<void> {
    const { role } = this.#app.config;
    if (role !== "jobs") await this.#openPublicPorts();
    await this.#internal?.start();
    this.#serving = true;
  }

  /**
   * Reports not ready, serves for the shutdown delay, lets running calls finish for up to 30 s, and closes all ports.
   */
  async stop(): Promise<void> {
    const wasServing = this.#serving;
    this.#serving = false;
    if (wasServing) await this.#app.clock.sleep(this.#shutdownDelayMs);
    this.#dispatcher.stop();
    this.#webSockets.stop();
    this.#stopping.abort();
    await Promise.all([this.#port.stop(graceMs), this.#grpc.stop(graceMs)]);
    this.#certificate?.stop();
    this.#transport.buffers.stop();
    await this.#mcp.close();
    await this.#rest.close();
    await this.#internal?.stop();
  }

  get #consoleParts() {
    const { clock, config } = this.#app;
    return { transport: this.#transport, config, clock };
  }

  async #loadToolServer(): Promise<CreateMcpServer> {
    const { createToolServer } = await import("./mcp/tool-server.ts");
    const { createTools } = await import("./mcp/tool-table.ts");
    const { clock, config, metrics } = this.#app;
    const { dispatcher, problems } = this.#transport;
    return createToolServer({
      tools: createTools(clock, createAccountExtraction(this.#app)),
      callMethod: createMethodCalls(this.#services, { dispatcher }),
      problems,
      publicUrl: config.publicUrl,
      stopped: this.#stopping.signal,
      metrics,
    });
  }

  async #openPublicPorts(): Promise<void> {
    // The first validation of each kind of rule takes up to 0.1 s. Validating a message with rules of the usual kinds
    // now spares the first clients this delay.
    ruleFaults(CreateSessionRequestSchema, create(CreateSessionRequestSchema));
    await this.#mountDocuments();
    await this.#rest.ready();
    this.#transport.buffers.start();
    this.#webSockets.start();
    await this.#grpc.start();
    await this.#port.start();
    this.#certificate?.start((certificate) => {
      for (const port of [this.#port, this.#grpc]) port.replaceCertificate(certificate);
    });
  }

  async #mountDocuments(): Promise<void> {
    const { errorsBase, embedOrigins, liveKit, prices } = this.#app.config;
    const files = readConsole({ demoUrl: this.#demoUrl, prices });
    if (files) this.#mountConsole(files);
    mountPages(this.#rest, {
      documents: createDocuments(this.#services, this.#app.config, this.#stopping.signal),
      webhooksGuide: readFileSync(new URL("../docs/webhooks.md", import.meta.url), "utf8"),
      errorsPath: errorsPathOf(errorsBase),
      home: files ? "/console/" : "/docs",
    });
    mountLinkPages(this.#rest);
    mountLivePage(this.#rest, { embedders: embedOrigins, mediaServer: liveKit?.url });
    await mountMoneyPages(this.#rest, this.#app.processors);
    mountStatusPage(this.#rest, this.#app.status, (raw) => peerOf(raw, this.#transport).clientAddress);
    const { outbox } = this.#app.mailer;
    if (outbox) await mountOutbox(this.#rest, outbox);
  }

  #mountConsole(files: ConsoleFiles): void {
    mountConsole(this.#rest, this.#app.config, files);
    mountConsoleSession(this.#rest, this.#consoleParts);
  }
}
