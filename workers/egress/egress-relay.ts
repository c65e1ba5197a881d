import { randomInt } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { isIP, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Proxy as ProxyMessage } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { failFields } from "../../src/platform/errors.ts";
import {
  type AddressRules,
  formatTarget,
  type HostPort,
  normaliseHost,
  parseTarget,
} from "../../src/platform/outgoing/address-rules.ts";
import { DomainList } from "../../src/platform/outgoing/domain-list.ts";
import { pinnedLookup, type Resolve } from "../../src/platform/outgoing/target-resolution.ts";
import type { Log } from "../base/log.ts";
import type { HostBlock } from "./block-lists.ts";
import { DirectRoute } from "./direct-route.ts";
import type { EgressRoute, Exit } from "./egress-route.ts";
import { forwardRequest, maxHeaderBytes } from "./forward.ts";
import { type EgressFailure, Journal, type JournalEntry, netErrorName } from "./journal.ts";
import type { MediaServer } from "./media-server.ts";
import { ProxiedRoute } from "./proxied-route.ts";
import { ProxyFailure } from "./proxy-failure.ts";
import { blockedHeader, type RefusalReason, refusalPage } from "./refusal-page.ts";
import { type EgressGuard, limitLookups } from "./resolver.ts";
import { type EgressBytes, SocketTally } from "./socket-tally.ts";
import { connectTarget, joinSockets } from "./tunnel.ts";
import { Upstream } from "./upstream.ts";
import type { EgressChange } from "./upstream-watch.ts";

export interface RelayOptions {
  rules: AddressRules;
  log: Log;
  /** Shows on the refusal page how to allow an address. Set this only if the reader is also the operator. */
  showRemedy?: boolean;
  /** Name resolver. Default: the system's. */
  resolve?: Resolve;
  /** Media server that pages must not reach. */
  mediaServer?: MediaServer;
}

/** Options of a session's own proxy. */
export interface UpstreamOptions {
  /** `host:port` used to probe a proxy that seems to be lost. */
  readonly check: string;
  /** Called when the proxy is verified, lost or available again. */
  onChange(change: EgressChange): void;
}

/**
 * The only egress of a session: an HTTP proxy that refuses targets outside the public internet, unless the operator or
 * the session allows them. The relay connects only to addresses that it has checked, or forwards to the session's own
 * proxy.
 */
export class EgressRelay {
  /** Private targets (`host:port`) that this session may reach in addition to the operator's exceptions. */
  readonly allow = new Set<string>();
  readonly #isAllowed = (target: HostPort): boolean => this.allow.has(formatTarget(target));
  readonly #options: RelayOptions;
  readonly #guard: EgressGuard;
  readonly #tally = new SocketTally();
  readonly #refusals = new Journal<JournalEntry>();
  readonly #failures = new Journal<EgressFailure>();
  /** Does not listen: `accept` passes in the connections. No request timeout: uploads may exceed Node's 5 minutes. */
  readonly #server = createServer({ maxHeaderSize: maxHeaderBytes, requestTimeout: 0 });
  readonly #connections = new Set<Socket>();
  readonly #direct: DirectRoute;
  /** Internal servers by their stand-in address. */
  readonly #standIns = new Map<string, HostPort>();
  #route: EgressRoute;
  #domains: DomainList | undefined;
  #hostBlock: HostBlock | undefined;
  readonly #blocked = new Map<string, number>();
  /** Requests to hosts that the session blocks. */
  readonly #blocks = new Journal<JournalEntry>();
  #refused = 0;
  #isClosed = false;

  constructor(options: RelayOptions) {
    this.#options = options;
    this.#guard = { rules: options.rules, resolve: limitLookups(options.resolve) };
    this.#direct = new DirectRoute(this.#guard, this.#isAllowed, this.#tally, options.mediaServer);
    this.#route = this.#direct;
    this.#server.on("request", (request, response) => this.#contain(response, this.#onRequest(request, response)));
    this.#server.on("connect", (request, socket, head) => {
      // The stream of a CONNECT request is the socket that `accept` passed in.
      void this.#contain(socket, this.#onConnect(request, socket as Socket, head));
    });
  }

  /** The last 256 refused requests, newest last. Excludes requests to hosts that the session blocks. */
  get refusals(): readonly JournalEntry[] {
    return this.#refusals.entries;
  }

  get refused(): number {
    return this.#refused;
  }

  /** Bytes sent and received since the relay was created. */
  get bytes(): EgressBytes {
    return this.#tally.bytes;
  }

  get state(): EgressRoute["state"] {
    return this.#route.state;
  }

  /** Routes all traffic through a proxy, except to targets in `allow`. May be called after the browser has launched. */
  useUpstream(proxy: ProxyMessage, { check, onChange }: UpstreamOptions): void {
    const target = parseTarget(check);
    if (!target) throw failFields("validation-failed", { proxy_check: "must be `host:port`" });
    const upstream = new Upstream(proxy, this.#guard, (socket) => this.#tally.add(socket));
    this.#route = new ProxiedRoute({ upstream, guard: this.#guard, check: target, onChange });
  }

  /** Restricts pages to these domains and their subdomains. */
  restrictTo(domains: readonly string[]): void {
    this.#domains = new DomainList(domains);
  }

  /** Blocks hosts for this session. */
  block(hosts: HostBlock): void {
    this.#hostBlock = hosts;
  }

  /** Number of blocked requests by kind. */
  get blocked(): ReadonlyMap<string, number> {
    return this.#blocked;
  }

  countBlocked(kind: string): void {
    this.#blocked.set(kind, (this.#blocked.get(kind) ?? 0) + 1);
  }

  /** Returns the reason for which a host is refused. */
  refusalReasonOf(host: string): RefusalReason {
    if (this.#isOutside(host)) return "outside";
    return this.#hostBlock?.reasonFor(host) === undefined ? "private" : "blocked";
  }

  /** Returns whether the session is restricted to domains that exclude a host. */
  #isOutside(host: string): boolean {
    return this.#domains !== undefined && !this.#domains.has(host);
  }

  /** Takes ownership of a browser connection. */
  accept(socket: Socket): void {
    if (this.#isClosed) {
      socket.destroy();
      return;
    }
    // Without this, Nagle's algorithm would delay small writes until the browser acknowledges the previous write.
    socket.setNoDelay();
    this.#connections.add(socket);
    socket.once("close", () => this.#connections.delete(socket));
    // A dying browser resets its connections, and the HTTP server does not handle errors of tunnels.
    socket.on("error", () => socket.destroy());
    this.#server.emit("connection", socket);
  }

  /**
   * Creates a random stand-in address for an internal server. CONNECT requests to the address bypass all rules and any
   * proxy until it is disposed of. Pages cannot guess the address: it is one of 2^33 in the benchmarking network
   * 198.18.0.0/15 (RFC 2544).
   */
  createStandIn(target: HostPort): HostPort & Disposable {
    const number = randomInt(2 ** 17);
    const host = `198.${18 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`;
    const standIn = { host, port: randomInt(1_024, 65_536) };
    const name = formatTarget(standIn);
    this.#standIns.set(name, target);
    return { ...standIn, [Symbol.dispose]: () => void this.#standIns.delete(name) };
  }

  /** Returns whether a request to a host and port was refused at or after `sinceMs` (milliseconds since 1970). */
  wasRefused(host: string, port: number, sinceMs: number): boolean {
    const target = asTarget(host, port);
    return this.#refusals.find(target, sinceMs) !== undefined || this.#blocks.find(target, sinceMs) !== undefined;
  }

  /** Returns the newest failed request to a host and port at or after `sinceMs`, with Chromium's error name. */
  failureOf(host: string, port: number, sinceMs: number): EgressFailure | undefined {
    return this.#failures.find(asTarget(host, port), sinceMs);
  }

  /** Closes every connection and refuses new ones. */
  close(): void {
    this.#isClosed = true;
    for (const socket of this.#connections) socket.destroy();
    this.#route.close();
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
    const exit = this.#standInExit(target) ?? (await this.#open(target));
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

  /** Limits an internal error to one connection, so that the worker does not crash. */
  async #contain(end: Duplex | ServerResponse, handled: Promise<void>): Promise<void> {
    try {
      await handled;
    } catch (error) {
      this.#options.log.error({ err: error }, "failed to relay a request");
      end.destroy();
    }
  }

  /** Returns the exit for a stand-in address. Bytes sent through this exit are not counted as session traffic. */
  #standInExit(standIn: HostPort): Pick<Exit, "connect" | "onAnswer" | "onSilence"> | undefined {
    const target = this.#standIns.get(formatTarget(standIn));
    if (!target) return undefined;
    const lookup = pinnedLookup([{ address: target.host, family: isIP(target.host) }]);
    return { connect: (signal) => connectTarget(target, lookup, signal) };
  }

  async #open(target: HostPort): Promise<Exit | "refused" | undefined> {
    // The host is checked before the lookup: a DNS query could leak data in its name.
    if (this.#isOutside(target.host)) return "refused";
    if (this.#hostBlock?.reasonFor(target.host)) return "refused";
    // Allowed private targets are in the operator's network, so they are reached directly: a proxy would look for them
    // in its own network.
    const route = this.#isAllowed(target) ? this.#direct : this.#route;
    try {
      return await route.open(target);
    } catch (error) {
      this.#noteFailure(target, error);
      return undefined;
    }
  }

  #refuseRequest(target: HostPort, response: ServerResponse): void {
    this.#noteRefusal(target);
    response.writeHead(403, {
      [blockedHeader]: "egress",
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      connection: "close",
    });
    response.end(refusalPage(target, this.refusalReasonOf(target.host), this.#options.showRemedy ?? false));
  }

  #noteRefusal(target: HostPort): void {
    const entry = { ...target, at: Date.now() };
    const kind = this.#isOutside(target.host) ? undefined : this.#hostBlock?.reasonFor(target.host);
    if (kind !== undefined) {
      this.countBlocked(kind);
      this.#blocks.add(entry);
      return;
    }
    this.#refused += 1;
    this.#refusals.add(entry);
  }

  #noteFailure(target: HostPort, error: unknown, exit?: Pick<Exit, "onSilence">): void {
    const proxyFault = error instanceof ProxyFailure && { proxyFault: error.what };
    this.#failures.add({ ...target, at: Date.now(), netError: netErrorName(error), ...proxyFault });
    exit?.onSilence?.(error);
  }
}

function asTarget(host: string, port: number): HostPort {
  return { host: normaliseHost(host.includes(":") && !host.startsWith("[") ? `[${host}]` : host) ?? host, port };
}

function endConnect(socket: Socket, status: string): void {
  if (socket.destroyed) return;
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  socket.destroySoon();
}
