import { readFileSync } from "node:fs";
import { BlockList, isIP } from "node:net";
import type { FastifyInstance } from "fastify";
import packageJson from "../package.json" with { type: "json" };
import type { App } from "../src/app.ts";
import { createInternalServer, type InternalServer } from "../src/platform/internal-server.ts";
import { warmUp } from "../src/platform/validation.ts";
import type { ServedService } from "../src/registry.ts";
import { allowedHosts, front, refuseBroken } from "./front.ts";
import { SharedPort } from "./listen.ts";
import { loadComments } from "./openapi/comments.ts";
import { buildOpenApi } from "./openapi/document.ts";
import { renderDocs } from "./pages/docs-page.ts";
import { errorsPathOf, mountPages } from "./pages/pages.ts";
import { createGate, type Gate } from "./policies/index.ts";
import { Problems } from "./problems.ts";
import { createRestServer } from "./rest/server.ts";
import { connectHandler } from "./rpc/connect.ts";
import { GrpcServer } from "./rpc/grpc-server.ts";
import { WebSockets } from "./ws/websockets.ts";

// What runs when a gateway is told to stop may finish within this.
const GRACE_MS = 30_000;

/** The ports of a gateway over an app: the public ones, and the internal one. */
export class Gateway {
  readonly #app: App;
  readonly #services: readonly ServedService[];
  readonly #gate: Gate;
  readonly #rest: FastifyInstance;
  readonly #port: SharedPort;
  readonly #grpc: GrpcServer;
  readonly #webSockets: WebSockets;
  readonly #internal: InternalServer;
  readonly #tls: { cert: Buffer; key: Buffer } | undefined;
  #serving = false;

  /** `services` is the registry, where it is not the whole one. */
  constructor(app: App, services = app.services) {
    const { config, ids, log, metrics } = app;
    this.#app = app;
    this.#tls = config.tls && { cert: readFileSync(config.tls.cert), key: readFileSync(config.tls.key) };
    this.#services = services;
    this.#gate = createGate(app);
    const context = {
      gate: this.#gate,
      problems: new Problems(config.errorsBase, log),
      trustedProxies: blockListOf(config.trustedProxies),
      makeRequestId: () => ids.next("req"),
      corsOrigins: config.corsOrigins,
      isOwnHost: allowedHosts(config),
    };
    this.#rest = createRestServer(this.#services, context);
    this.#webSockets = new WebSockets(this.#services, context);
    this.#grpc = new GrpcServer(this.#services, context);
    const connect = connectHandler(this.#services, context, (request, response) =>
      this.#rest.routing(request, response),
    );
    this.#port = new SharedPort({
      host: config.host,
      port: config.port,
      tls: this.#tls,
      onRequest: front(context, connect),
      onUpgrade: (request, socket, head) => void this.#webSockets.upgrade(request, socket, head),
      onClientError: refuseBroken(context),
    });
    const isReady = async (): Promise<boolean> => this.#serving && (await app.isReady());
    this.#internal = createInternalServer({ host: config.host, port: config.internalPort, isReady, metrics });
  }

  /** Listens on all ports; on the internal one alone when the process does background jobs only. */
  async start(): Promise<void> {
    const { role } = this.#app.config;
    if (role !== "jobs") {
      await this.#openPublicPorts();
    }
    await this.#internal.start();
    this.#serving = true;
  }

  /** Is no longer ready, lets what runs finish, up to 30 s, and closes all ports. */
  async stop(): Promise<void> {
    this.#serving = false;
    this.#gate.stop();
    this.#webSockets.stop();
    await Promise.all([this.#port.stop(GRACE_MS), this.#grpc.stop(GRACE_MS)]);
    await this.#rest.close();
    await this.#internal.stop();
  }

  async #openPublicPorts(): Promise<void> {
    const { host, grpcPort } = this.#app.config;
    for (const { method } of this.#services.flatMap((service) => service.methods)) {
      warmUp(method.input);
    }
    await this.#mountDocuments();
    await this.#rest.ready();
    await this.#grpc.start(host, grpcPort, this.#tls);
    await this.#port.start();
  }

  async #mountDocuments(): Promise<void> {
    const { publicUrl, errorsBase } = this.#app.config;
    const comments = await loadComments();
    const document = buildOpenApi(this.#services, { publicUrl, errorsBase, version: packageJson.version, comments });
    await mountPages(this.#rest, {
      openApiJson: JSON.stringify(document),
      docsHtml: renderDocs(document),
      errorsPath: errorsPathOf(errorsBase),
    });
  }
}

function blockListOf(items: readonly string[]): BlockList {
  const list = new BlockList();
  for (const item of items) {
    const [address = "", bits] = item.split("/");
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    list.addSubnet(address, bits === undefined ? (family === "ipv6" ? 128 : 32) : Number(bits), family);
  }
  return list;
}
