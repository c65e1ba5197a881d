import { randomInt } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { isIP, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Proxy as ProxyMessage } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { failFields } from "../../src/platform/errors.ts";
import {
  type AddressRules,
  formatTarget,
  normaliseHost,
  parseTarget,
  type Target,
} from "../../src/platform/outgoing/address-rules.ts";
import { DomainList } from "../../src/platform/outgoing/domain-list.ts";
import { pinnedLookup, type Resolve } from "../../src/platform/outgoing/target-resolution.ts";
import type { Log } from "../base/log.ts";
import { DirectWay } from "./direct-way.ts";
import { forwardRequest, maxHeaderBytes } from "./forward.ts";
import { type EgressFailure, Journal, type JournalEntry, netErrorOf } from "./journal.ts";
import type { MediaServer } from "./media-server.ts";
import { ProxiedWay } from "./proxied-way.ts";
import { ProxyFailure } from "./proxy-failure.ts";
import { blockedHeader, refusalPage } from "./refusal-page.ts";
import { type EgressGuard, takeTurns } from "./resolver.ts";
import { type EgressBytes, SocketTally } from "./socket-tally.ts";
import { connectTarget, joinSockets } from "./tunnel.ts";
import { Upstream } from "./upstream.ts";
import type { EgressChange } from "./upstream-watch.ts";
import type { Exit, WayOut } from "./way-out.ts";

export interface RelayOptions {
  rules: AddressRules;
  log: Log;
  /** Tells the reader of a refusal how the operator lets an address through: right where reader and operator are one. */
  showRemedy?: boolean;
  /** Resolves names; the system's resolver unless given. */
  resolve?: Resolve;
  /** Pages do not reach it. */
  mediaServer?: MediaServer;
}

/** What the relay needs to know beside a proxy. */
export interface UpstreamUse {
  /** `host:port` that the proxy is asked for when it seems to be lost. */
  readonly check: string;
  /** Hears that the proxy was verified, lost or found again. */
  onChange(change: EgressChange): void;
}

/**
 * The only way out of a session: an HTTP proxy that refuses what is not on the public internet, and connects to exactly
 * the addresses that it has checked, or hands on to the session's own proxy.
 */
export class Relay {
  /** Private targets (`host:port`) that this session may reach besides the operator's exceptions. */
  readonly allow = new Set<string>();
  readonly #isAllowed = (target: Target): boolean => this.allow.has(formatTarget(target));
  readonly #options: RelayOptions;
  readonly #guard: EgressGuard;
  readonly #tally = new SocketTally();
  readonly #refusals = new Journal<JournalEntry>();
  readonly #failures = new Journal<EgressFailure>();
  /** Listens nowhere: it is handed the browser's connections. An upload may take longer than Node's 5 minutes. */
  readonly #server = createServer({ maxHeaderSize: maxHeaderBytes, requestTimeout: 0 });
  readonly #connections = new Set<Socket>();
  readonly #direct: DirectWay;
  /** Made-up addresses, and what each of them leads to. */
  readonly #standIns = new Map<string, Target>();
  #way: WayOut;
  #domains: DomainList | undefined;
  #refused = 0;
  #isClosed = false;

  constructor(options: RelayOptions) {
    this.#options = options;
    this.#guard = { rules: options.rules, resolve: takeTurns(options.resolve) };
    this.#direct = new DirectWay(this.#guard, this.#isAllowed, this.#tally, options.mediaServer);
    this.#way = this.#direct;
    this.#server.on("request", (request, response) => this.#contain(response, this.#onRequest(request, response)));
    this.#server.on("connect", (request, socket, head) => {
      // The boundary where the server's stream is the socket that it was handed.
      void this.#contain(socket, this.#onConnect(request, socket as Socket, head));
    });
  }

  /** Requests that were refused, newest last; at most 256 are kept. */
  get refusals(): readonly JournalEntry[] {
    return this.#refusals.entries;
  }

  /** How many requests were refused. */
  get refused(): number {
    return this.#refused;
  }

  /** Bytes that left and came since the relay was made. */
  get bytes(): EgressBytes {
    return this.#tally.bytes;
  }

  /** How the session's traffic leaves. */
  get state(): WayOut["state"] {
    return this.#way.state;
  }

  /** Sends everything but `allow` through a proxy from now on. A browser may have been launched already. */
  useUpstream(proxy: ProxyMessage, { check, onChange }: UpstreamUse): void {
    const target = parseTarget(check);
    if (!target) throw failFields("validation-failed", { proxy_check: "is not host:port" });
    const upstream = new Upstream(proxy, this.#guard, (socket) => this.#tally.add(socket));
    this.#way = new ProxiedWay({ upstream, guard: this.#guard, check: target, onChange });
  }

  /** Lets pages reach hosts of these domains alone from now on. */
  keepTo(domains: readonly string[]): void {
    this.#domains = new DomainList(domains);
  }

  /** Whether a host is none of those that the session is kept to. */
  isOutside(host: string): boolean {
    return this.#domains !== undefined && !this.#domains.has(host);
  }

  /** Takes over a connection of the browser's. */
  accept(socket: Socket): void {
    if (this.#isClosed) {
      socket.destroy();
      return;
    }
    // What a server sends in small parts would else wait for the browser's acknowledgement of the part before.
    socket.setNoDelay();
    this.#connections.add(socket);
    socket.once("close", () => this.#connections.delete(socket));
    // A browser that dies breaks its connections, and tunnels are not the server's to look after.
    socket.on("error", () => socket.destroy());
    this.#server.emit("connection", socket);
  }

  /**
   * Makes up an address that leads to a server of ours until it is disposed of, past all rules and any proxy: to pages it is
   * one of 2^33, in a network that has no hosts (RFC 2544).
   */
  standFor(target: Target): Target & Disposable {
    const number = randomInt(2 ** 17);
    const host = `198.${18 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`;
    const standIn = { host, port: randomInt(1_024, 65_536) };
    const name = formatTarget(standIn);
    this.#standIns.set(name, target);
    return { ...standIn, [Symbol.dispose]: () => void this.#standIns.delete(name) };
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
    for (const socket of this.#connections) socket.destroy();
    this.#way.close();
    this.#direct.close();
    this.#tally.close();
  }

  async #onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = URL.parse(request.url ?? "");
    const host = url && normaliseHost(url.hostname);
    if (url?.protocol !== "http:" || !host) {
      response.writeHead(400, { connection: "close" }).end();
      return;
    }
    const target = { host, port: Number(url.port || 80) };
    const exit = await this.#open(target);
    if (!exit) response.destroy();
    else if (exit === "refused") this.#refuseRequest(target, response);
    else {
      const onFailure = (error: unknown) => this.#noteFailure(target, error, exit);
      forwardRequest({ request, response, target, exit, onFailure });
    }
  }

  async #onConnect(request: IncomingMessage, browser: Socket, head: Buffer): Promise<void> {
    const target = parseTarget(request.url ?? "");
    if (!target) return endConnect(browser, "400 Bad Request");
    const exit = this.#toServer(target) ?? (await this.#open(target));
    if (!exit) return endConnect(browser, "502 Bad Gateway");
    if (exit === "refused") {
      this.#noteRefusal(target);
      return endConnect(browser, `403 Forbidden\r\n${blockedHeader}: egress`);
    }
    const gone = new AbortController();
    const onClose = () => gone.abort();
    browser.once("close", onClose);
    if (browser.destroyed) return;
    try {
      const socket = await exit.connect(gone.signal);
      exit.onAnswer?.();
      if (head.length > 0) browser.unshift(head);
      browser.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      joinSockets(browser, socket);
    } catch (error) {
      if (!gone.signal.aborted) this.#noteFailure(target, error, exit);
      endConnect(browser, "502 Bad Gateway");
    } finally {
      browser.off("close", onClose);
    }
  }

  /** A fault of ours ends one connection of one page, not the worker. */
  async #contain(end: Duplex | ServerResponse, handled: Promise<void>): Promise<void> {
    try {
      await handled;
    } catch (error) {
      this.#options.log.error({ err: error }, "the relay failed to handle a request");
      end.destroy();
    }
  }

  /** The way to what a made-up address stands for. What goes there is no traffic of the session's. */
  #toServer(standIn: Target): Pick<Exit, "connect" | "onAnswer" | "onSilence"> | undefined {
    const target = this.#standIns.get(formatTarget(standIn));
    if (!target) return undefined;
    const lookup = pinnedLookup([{ address: target.host, family: isIP(target.host) }]);
    return { connect: (signal) => connectTarget(target, lookup, signal) };
  }

  async #open(target: Target): Promise<Exit | "refused" | undefined> {
    // Before its name is resolved: a name can carry what is not to get out.
    if (this.isOutside(target.host)) return "refused";
    // What a session may reach besides is ours and beside us: a proxy would look for it in its own network.
    const way = this.#isAllowed(target) ? this.#direct : this.#way;
    try {
      return await way.open(target);
    } catch (error) {
      this.#noteFailure(target, error);
      return undefined;
    }
  }

  #refuseRequest(target: Target, response: ServerResponse): void {
    this.#noteRefusal(target);
    response.writeHead(403, {
      [blockedHeader]: "egress",
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      connection: "close",
    });
    response.end(
      refusalPage(target, this.isOutside(target.host) ? "outside" : "private", this.#options.showRemedy ?? false),
    );
  }

  #noteRefusal(target: Target): void {
    this.#refused += 1;
    this.#refusals.add({ ...target, at: Date.now() });
  }

  #noteFailure(target: Target, error: unknown, exit?: Pick<Exit, "onSilence">): void {
    const proxyFault = error instanceof ProxyFailure && { proxyFault: error.what };
    this.#failures.add({ ...target, at: Date.now(), netError: netErrorOf(error), ...proxyFault });
    exit?.onSilence?.(error);
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
