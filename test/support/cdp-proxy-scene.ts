import { once } from "node:events";
import { WebSocket } from "ws";
import { FixtureSite } from "./fixture-site.ts";
import { type Rest, restClient } from "./rest.ts";
import { type Service, startService } from "./service.ts";
import { type Borrowed, borrowService, type WarmService } from "./warm-service.ts";

/** Service with a site, for tests with CDP clients. */
export interface CdpScene extends AsyncDisposable {
  readonly service: WarmService;
  readonly site: FixtureSite;
  readonly rest: Rest;
  /** Opens a session and returns its path, `/v1/sessions/ses_...`. */
  open(request?: object): Promise<string>;
  /** Creates an address for CDP clients of a session. */
  cdpUrl(session: string): Promise<string>;
}

/** Scene with an exclusive service. */
export interface OwnCdpScene extends CdpScene {
  readonly service: Service;
}

/**
 * Starts a scene with an exclusive service, which checks proxies by the site and launches no browser ahead. `env`
 * extends its environment, and `command` starts the service.
 */
export async function startCdpScene(
  env: Record<string, string> = {},
  command?: readonly string[],
): Promise<OwnCdpScene> {
  const site = await new FixtureSite().start();
  const ground = { EGRESS_ALLOW: site.host, PROXY_CHECK: site.host, WARM_BROWSERS: "0" };
  const service = await startService({ ...ground, ...env }, undefined, command);
  return { ...sceneOf(service, site), service };
}

/** Starts a scene with the service that files of this vitest worker share. */
export async function borrowCdpScene(): Promise<CdpScene & Pick<Borrowed, "ports" | "llmPort">> {
  const { service, site, ports, llmPort } = await borrowService();
  return { ...sceneOf(service, site), ports, llmPort };
}

function sceneOf(service: WarmService, site: FixtureSite): CdpScene {
  const rest = restClient(service);
  return {
    service,
    site,
    rest,
    async open(request = {}) {
      const { body } = await rest("/v1/sessions", request);
      return `/v1/sessions/${body.id}`;
    },
    async cdpUrl(session) {
      const { body } = await rest(`${session}/cdp-url`, {});
      return body.url;
    },
    async [Symbol.asyncDispose]() {
      await service.stop();
      await site.stop();
    },
  };
}

export interface CdpMessage {
  readonly id?: number;
  readonly method?: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into messages of every shape.
  readonly params?: any;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into messages of every shape.
  readonly result?: any;
  readonly error?: { readonly code: number; readonly message: string };
  readonly sessionId?: string;
}

/** CDP client that sends only explicit commands. */
export class BareClient implements Disposable {
  readonly socket: WebSocket;
  /** All received messages, in order. */
  readonly received: CdpMessage[] = [];
  /** Session that the handshake named; undefined if it named none. */
  sessionId: string | undefined;
  /** Close code and reason of the connection. */
  readonly closed: Promise<{ code: number; reason: string }>;
  #lastId = 0;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (data) => void this.received.push(JSON.parse(String(data))));
    socket.on("error", () => undefined);
    this.closed = new Promise((resolve) => {
      socket.once("close", (code, reason) => resolve({ code, reason: String(reason) }));
    });
  }

  /** Connects. Rejects with the HTTP status and the problem of a refusal. */
  static async connect(url: string, headers: Record<string, string> = {}): Promise<BareClient> {
    const socket = new WebSocket(url, { headers, maxPayload: 200 * 2 ** 20 });
    const client = new BareClient(socket);
    const refused = once(socket, "unexpected-response").then(async ([, response]) => {
      const problem = Buffer.concat(await response.toArray()).toString();
      socket.terminate();
      throw new Error(`the connection was refused: ${response.statusCode} ${problem}`);
    });
    const opened = Promise.all([once(socket, "upgrade"), once(socket, "open")]);
    const [[{ headers: answered }]] = await Promise.race([opened, refused]);
    client.sessionId = answered["x-session-id"];
    return client;
  }

  /** Sends a command and returns its response. */
  async send(method: string, params: object = {}, sessionId?: string): Promise<CdpMessage> {
    this.#lastId += 1;
    const id = this.#lastId;
    this.socket.send(JSON.stringify({ id, method, params, ...(sessionId !== undefined && { sessionId }) }));
    return this.receive((message) => message.id === id);
  }

  /** Returns the first message, received or future, that matches. */
  async receive(isMeant: (message: CdpMessage) => boolean): Promise<CdpMessage> {
    for (;;) {
      const found = this.received.find(isMeant);
      if (found) return found;
      await Promise.race([
        once(this.socket, "message"),
        this.closed.then(({ code, reason }) => {
          throw new Error(`the connection was closed: ${code} ${reason}`);
        }),
      ]);
    }
  }

  /** Attaches to the session's first page and returns the CDP session id. */
  async attach(): Promise<string> {
    const { result } = await this.send("Target.getTargets");
    const page = result.targetInfos.find(({ type }: { type: string }) => type === "page");
    const attached = await this.send("Target.attachToTarget", { targetId: page.targetId, flatten: true });
    return attached.result.sessionId;
  }

  [Symbol.dispose](): void {
    this.socket.terminate();
  }
}
