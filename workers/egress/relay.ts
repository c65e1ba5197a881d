import http, { type IncomingMessage, type ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { Server as ProxyServer } from "proxy-chain";
import type { Log } from "../slots/log.ts";
import { type AddressRules, formatTarget, normaliseHost, parseTarget, type Target } from "./address-rules.ts";
import { forwardRequest, MAX_HEADER_BYTES } from "./forward.ts";
import { type EgressFailure, Journal, type JournalEntry, netErrorOf } from "./journal.ts";
import { BLOCKED_HEADER, refusalPage } from "./refusal-page.ts";
import { pinnedLookup, type Resolution, type Resolve, resolveTarget, takeTurns } from "./resolver.ts";
import { connectTarget, joinSockets } from "./tunnel.ts";

/** What a session's relay is made of. */
export interface RelayOptions {
  rules: AddressRules;
  log: Log;
  /** Tells the reader of a refusal how the operator lets an address through: right where reader and operator are one. */
  showRemedy?: boolean;
  /** Resolves names; the system's resolver unless given. */
  resolve?: Resolve;
}

/** Bytes that crossed the relay, counted on the side of the sites. */
export interface EgressBytes {
  sent: number;
  received: number;
}

/**
 * The only way out of a session: an HTTP proxy that resolves names itself, refuses what is not on the public internet,
 * and connects to exactly the addresses that it has checked.
 */
export class Relay {
  /** Private targets (`host:port`) that this session may reach besides the operator's exceptions. */
  readonly allow = new Set<string>();
  readonly #options: RelayOptions;
  readonly #resolveName: Resolve;
  readonly #refusals = new Journal<JournalEntry>();
  readonly #failures = new Journal<EgressFailure>();
  readonly #targets = new Set<Socket>();
  readonly #closed: EgressBytes = { sent: 0, received: 0 };
  readonly #agent: http.Agent;
  readonly #server: RelayServer;
  #isClosed = false;

  constructor(options: RelayOptions) {
    this.#options = options;
    this.#resolveName = takeTurns(options.resolve);
    this.#agent = new CountingAgent((socket) => this.#count(socket));
    this.#server = new RelayServer({
      request: (request, response) => this.#guard(response, this.#onRequest(request, response)),
      connect: (request, socket, head) => this.#guard(socket, this.#onConnect(request, socket, head)),
    });
  }

  /** Requests that were refused, newest last; at most 256 are kept. */
  get refusals(): readonly JournalEntry[] {
    return this.#refusals.entries;
  }

  /** Bytes exchanged with sites since the relay was made. */
  get bytes(): EgressBytes {
    const sum = { ...this.#closed };
    for (const socket of this.#targets) {
      sum.sent += socket.bytesWritten;
      sum.received += socket.bytesRead;
    }
    return sum;
  }

  /** Takes over a connection of the browser's. */
  accept(socket: Socket): void {
    if (this.#isClosed) socket.destroy();
    else this.#server.server.emit("connection", socket);
  }

  /** Tells whether a request to this host and port was refused since a time (milliseconds since 1970). */
  wasRefused(host: string, port: number, sinceMs: number): boolean {
    return this.#refusals.find(asTarget(host, port), sinceMs) !== undefined;
  }

  /** Gives the newest request to this host and port that failed on its way since a time, with Chromium's name for it. */
  failureOf(host: string, port: number, sinceMs: number): EgressFailure | undefined {
    return this.#failures.find(asTarget(host, port), sinceMs);
  }

  /** Ends every connection and takes no more. */
  close(): void {
    this.#isClosed = true;
    this.#server.closeConnections();
    this.#agent.destroy();
    for (const socket of this.#targets) socket.destroy();
  }

  async #onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = URL.parse(request.url ?? "");
    const host = url && normaliseHost(url.hostname);
    if (url?.protocol !== "http:" || !host) {
      response.writeHead(400, { connection: "close" }).end();
      return;
    }
    const target = { host, port: Number(url.port || 80) };
    const onFailure = (error: unknown) => this.#noteFailure(target, error);
    const resolution = await this.#resolve(target, onFailure);
    if (!resolution) response.destroy();
    else if (resolution.kind === "refused") this.#refuseRequest(target, response);
    else {
      const lookup = pinnedLookup(resolution.addresses);
      forwardRequest({ request, response, target, agent: this.#agent, lookup, onFailure });
    }
  }

  async #onConnect(request: IncomingMessage, browser: Socket, head: Buffer): Promise<void> {
    const target = parseTarget(request.url ?? "");
    if (!target) return endConnect(browser, "400 Bad Request");
    const onFailure = (error: unknown) => this.#noteFailure(target, error);
    const resolution = await this.#resolve(target, onFailure);
    if (!resolution) return endConnect(browser, "502 Bad Gateway");
    if (resolution.kind === "refused") {
      this.#refusals.add({ ...target, at: Date.now() });
      return endConnect(browser, `403 Forbidden\r\n${BLOCKED_HEADER}: egress`);
    }
    const gone = new AbortController();
    const onClose = () => gone.abort();
    browser.once("close", onClose);
    if (browser.destroyed) return;
    try {
      const socket = await connectTarget(target, pinnedLookup(resolution.addresses), gone.signal);
      this.#count(socket);
      if (head.length > 0) browser.unshift(head);
      browser.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      joinSockets(browser, socket);
    } catch (error) {
      if (!gone.signal.aborted) onFailure(error);
      endConnect(browser, "502 Bad Gateway");
    } finally {
      browser.off("close", onClose);
    }
  }

  /** A fault of ours ends one connection of one page, not the worker. */
  async #guard(end: Duplex | ServerResponse, handled: Promise<void>): Promise<void> {
    try {
      await handled;
    } catch (error) {
      this.#options.log.error({ err: error }, "the relay failed to handle a request");
      end.destroy();
    }
  }

  async #resolve(target: Target, onFailure: (error: unknown) => void): Promise<Resolution | undefined> {
    const isAllowed = (wanted: Target) => this.allow.has(formatTarget(wanted));
    try {
      return await resolveTarget(target, this.#options.rules, isAllowed, this.#resolveName);
    } catch (error) {
      onFailure(error);
      return undefined;
    }
  }

  #refuseRequest(target: Target, response: ServerResponse): void {
    this.#refusals.add({ ...target, at: Date.now() });
    response.writeHead(403, {
      [BLOCKED_HEADER]: "egress",
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      connection: "close",
    });
    response.end(refusalPage(target, this.#options.showRemedy ?? false));
  }

  #noteFailure(target: Target, error: unknown): void {
    this.#failures.add({ ...target, at: Date.now(), netError: netErrorOf(error) });
  }

  #count(socket: Socket): void {
    if (this.#isClosed) {
      socket.destroy();
      return;
    }
    this.#targets.add(socket);
    socket.once("close", () => {
      this.#targets.delete(socket);
      this.#closed.sent += socket.bytesWritten;
      this.#closed.received += socket.bytesRead;
    });
  }
}

interface Handlers {
  request(request: IncomingMessage, response: ServerResponse): Promise<void>;
  connect(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void>;
}

/**
 * proxy-chain's server with our own way to sites that are reached directly. Its own would pass a refused connection on
 * as a page (status 594), connect without a deadline, and share one pool of connections among all sessions; an upstream
 * proxy is what it does well, and goes through `super`.
 */
class RelayServer extends ProxyServer {
  readonly #handlers: Handlers;

  constructor(handlers: Handlers) {
    super();
    this.#handlers = handlers;
    // An upload may take longer than Node's 5 minutes; the session's own deadlines end it.
    this.server.requestTimeout = 0;
    Object.assign(this.server, { maxHeaderSize: MAX_HEADER_BYTES });
  }

  override onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    return this.#handlers.request(request, response);
  }

  override onConnect(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    return this.#handlers.connect(request, socket, head);
  }
}

/** Keeps connections of one session open between its requests, and shows each to the counter. */
class CountingAgent extends http.Agent {
  readonly #onSocket: (socket: Socket) => void;

  constructor(onSocket: (socket: Socket) => void) {
    super({ keepAlive: true });
    this.#onSocket = onSocket;
  }

  override createConnection(...parameters: Parameters<http.Agent["createConnection"]>): Duplex | null | undefined {
    const socket = super.createConnection(...parameters);
    if (socket instanceof Socket) this.#onSocket(socket);
    return socket;
  }
}

function asTarget(host: string, port: number): Target {
  return { host: normaliseHost(host.includes(":") && !host.startsWith("[") ? `[${host}]` : host) ?? host, port };
}

function endConnect(socket: Socket, status: string): void {
  if (socket.destroyed) return;
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  socket.destroySoon();
}
