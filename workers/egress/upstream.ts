import { isIP, type Socket } from "node:net";
import { connect as secure } from "node:tls";
import type { Proxy as ProxyMessage } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { Deadline, raceSignal } from "../../src/platform/deadline.ts";
import { type HostPort, isPublicAddress, parseTarget } from "../../src/platform/outgoing/address-rules.ts";
import { pinnedLookup, resolveTarget } from "../../src/platform/outgoing/target-resolution.ts";
import { openHttpTunnel } from "./http-tunnel.ts";
import { connectionClosed, ProxyFailure } from "./proxy-failure.ts";
import type { EgressGuard } from "./resolver.ts";
import { openSocks5Tunnel, type ProxyLogin } from "./socks5.ts";
import { connectTarget } from "./tunnel.ts";

export type UpstreamProtocol = "http" | "https" | "socks5";

export interface TunnelOptions {
  /** Cancels the attempt, for example when the browser disconnects. */
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

/**
 * A customer's proxy. Its address must pass the rules for pages, without the session's own exceptions. The address is
 * resolved and pinned for every connection. The certificate of an `https` proxy is verified against public CAs and
 * NODE_EXTRA_CA_CERTS.
 */
export class Upstream {
  readonly protocol: UpstreamProtocol;
  readonly target: HostPort;
  /** Value of `Proxy-Authorization`, if the proxy has credentials. */
  readonly authorization: string | undefined;
  readonly #login: ProxyLogin | undefined;
  readonly #guard: EgressGuard;
  readonly #onSocket: (socket: Socket) => void;
  #isInPrivateNetwork: Promise<boolean> | undefined;

  constructor(proxy: ProxyMessage, guard: EgressGuard, onSocket: (socket: Socket) => void = () => undefined) {
    const { server, username, password } = proxy;
    const { protocol, target } = parseServer(server);
    this.protocol = protocol;
    this.target = target;
    this.#guard = guard;
    this.#onSocket = onSocket;
    if (username === undefined && password === undefined) return;
    this.#login = { username: username ?? "", password: password ?? "" };
    const pair = Buffer.from(`${this.#login.username}:${this.#login.password}`).toString("base64");
    this.authorization = `Basic ${pair}`;
  }

  /** Returns whether the proxy is in the operator's private network. An unresolvable name counts as private. */
  isInPrivateNetwork(): Promise<boolean> {
    this.#isInPrivateNetwork ??= this.#isResolvedPrivate();
    return this.#isInPrivateNetwork;
  }

  /** Connects to the proxy for requests in absolute form. Rejects with a ProxyFailure unless the signal aborts. */
  connect(options: TunnelOptions): Promise<Socket> {
    return this.#within(options, (signal) => this.#connect(signal));
  }

  /** Opens a tunnel through the proxy. Rejects with a ProxyFailure unless the signal aborts. */
  tunnel(target: HostPort, options: TunnelOptions): Promise<Socket> {
    return this.#within(options, async (signal) => {
      const socket = await this.#connect(signal);
      const stop = () => socket.destroy();
      signal.addEventListener("abort", stop, { once: true });
      try {
        if (this.protocol === "socks5") await openSocks5Tunnel(socket, target, this.#login);
        else await openHttpTunnel(socket, target, this.authorization);
        return socket;
      } catch (error) {
        socket.destroy();
        throw error;
      } finally {
        signal.removeEventListener("abort", stop);
      }
    });
  }

  async #within(options: TunnelOptions, work: (signal: AbortSignal) => Promise<Socket>): Promise<Socket> {
    const late = new ProxyFailure("timeout", `did not answer within ${options.timeoutMs / 1_000} s`);
    using deadline = new Deadline(options.timeoutMs, () => late, [options.signal]);
    const { signal } = deadline;
    try {
      return await work(signal);
    } catch (error) {
      // After the deadline, `error` is only a consequence of the abort.
      throw signal.reason === late ? late : error;
    }
  }

  async #isResolvedPrivate(): Promise<boolean> {
    const { host } = this.target;
    if (isIP(host) !== 0) return !isPublicAddress(host);
    const addresses = await this.#guard.resolve(host).catch(() => []);
    // The next request looks the name up again.
    if (addresses.length === 0) this.#isInPrivateNetwork = undefined;
    return addresses.length === 0 || addresses.some(({ address }) => !isPublicAddress(address));
  }

  async #connect(signal: AbortSignal): Promise<Socket> {
    const { rules, resolve } = this.#guard;
    const resolution = await raceSignal(
      resolveTarget(this.target, rules, () => false, resolve),
      signal,
    ).catch(asUnreachable);
    if (resolution.kind === "refused") {
      throw new ProxyFailure("egress_blocked", "is not a public address: use a proxy with a public address");
    }
    const lookup = pinnedLookup(resolution.addresses);
    const socket = await connectTarget(this.target, lookup, signal).catch(asUnreachable);
    this.#onSocket(socket);
    return this.protocol === "https" ? startTls(socket, this.target.host, signal) : socket;
  }
}

function parseServer(server: string): { protocol: UpstreamProtocol; target: HostPort } {
  const [protocol, authority] = server.split("://");
  const target = parseTarget(authority ?? "");
  if (!target || (protocol !== "http" && protocol !== "https" && protocol !== "socks5")) {
    throw new ProxyFailure("unreachable", "has an invalid address: expected scheme://host:port");
  }
  return { protocol, target };
}

function startTls(socket: Socket, host: string, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const name = isIP(host) === 0 ? { servername: host } : {};
    const tls = secure({ socket, host, ...name, ALPNProtocols: ["http/1.1"] });
    const stop = () => tls.destroy(new Error("the browser disconnected"));
    const settle = () => signal.removeEventListener("abort", stop);
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    tls.once("secureConnect", () => {
      settle();
      resolve(tls);
    });
    // This listener is never removed: an unhandled socket error between two owners would crash the worker.
    tls.on("error", (error) => {
      settle();
      socket.destroy();
      reject(asTlsFailure(error));
    });
  });
}

function asTlsFailure(error: Error): ProxyFailure {
  const code = "code" in error ? String(error.code) : "";
  if (code === "ECONNRESET" || code === "EPIPE") return connectionClosed(error);
  return new ProxyFailure("unreachable", `cannot be trusted, or does not speak TLS (${code || error.message})`);
}

function asUnreachable(error: unknown): never {
  if (error instanceof ProxyFailure) throw error;
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  const code = first instanceof Error && "code" in first ? String(first.code) : "no connection";
  throw new ProxyFailure("unreachable", `cannot be reached (${code})`);
}
