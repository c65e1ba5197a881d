import type { LookupAddress } from "node:dns";
import type { LookupFunction, Socket } from "node:net";
import { createSecureContext } from "node:tls";
import type { Agent, buildConnector, Client, Dispatcher, Pool } from "undici";
import { unlessLate } from "../deadline.ts";
import { createLimiter } from "../limiter.ts";
import type { HostPort } from "./address-rules.ts";
import { loadUndici } from "./operator-dispatcher.ts";
import type { OutgoingOptions } from "./outgoing-options.ts";
import { openTunnel } from "./proxy-tunnel.ts";
import { pinnedLookup } from "./target-resolution.ts";

/** Milliseconds to keep an idle connection. Most servers close idle connections after 5 s. */
const keepMs = 4_000;

/** Milliseconds for which a connection is reused. A new connection resolves the name again. */
const reuseMs = 30_000;

/** Maximum milliseconds of a connection attempt. Its request may have been aborted earlier. */
const connectMs = 15_000;

/** Maximum number of idle connections. A TLS connection takes about 50 KiB. */
const maxIdle = 128;

/** Key exchange without ML-KEM. The larger first message of ML-KEM would keep another 16 KiB per connection. */
const ecdhCurve = "X25519:P-256:P-384";

/**
 * Limits concurrent TLS handshakes, each of which takes about 20 KiB. A handshake stops counting after `countedMs`, so
 * that silent servers do not block others.
 */
const handshakes = { atOnce: 64, countedMs: 300 };

/** Returns the addresses of a target, or `proxy` if the proxy resolves the name. Rejects if the target is refused. */
export type Locate = (protocol: string, target: HostPort) => Promise<readonly LookupAddress[] | "proxy">;

type ConnectorArguments = Parameters<buildConnector.connector>;

/** Options of a request that observes its connection. */
export interface ObservedRequest extends Dispatcher.RequestOptions {
  /** Called when the request is written to a connection. */
  readonly onSend: (isReused: boolean) => void;
}

/** Creates an agent that connects only to checked addresses, with a bound on all idle connections. */
export function keepConnections(outgoing: OutgoingOptions, locate: Locate): Agent {
  const { Agent, Pool } = loadUndici();
  /** Functions that close idle connections, in the order of their last use. */
  const idle = new Set<() => void>();
  const connect = createConnector(outgoing, locate);
  const options: Pool.Options = {
    allowH2: false,
    keepAliveTimeout: keepMs,
    keepAliveMaxTimeout: keepMs,
    clientTtl: reuseMs,
    // Requests have time limits of their own.
    headersTimeout: 0,
    bodyTimeout: 0,
  };
  const openPool = (origin: string | URL) =>
    new Pool(origin, { ...options, connect, factory: (to) => openClient(to, options, connect, idle) });
  return new Agent({ ...options, factory: openPool });
}

/** Creates a client of one connection. If too many connections are idle, the least recently used is closed. */
function openClient(
  origin: URL,
  options: Client.Options,
  connect: buildConnector.connector,
  idle: Set<() => void>,
): Client {
  let socket: Socket | undefined;
  let isFresh = true;
  const observedConnect: buildConnector.connector = (target, callback) =>
    connect(target, (...answer) => {
      isFresh = true;
      socket = answer[1] ?? undefined;
      callback(...answer);
    });
  const client = new (loadUndici().Client)(origin, { ...options, connect: observedConnect });
  const close = (): void => void socket?.destroy();
  const dispatch = client.dispatch.bind(client);
  client.on("disconnect", () => idle.delete(close));
  client.dispatch = (request: Dispatcher.DispatchOptions & Partial<ObservedRequest>, handler) => {
    idle.delete(close);
    return dispatch(request, {
      onRequestStart(...args) {
        request.onSend?.(!isFresh);
        isFresh = false;
        handler.onRequestStart?.(...args);
      },
      onResponseStart: (...args) => handler.onResponseStart?.(...args),
      onResponseData: (...args) => handler.onResponseData?.(...args),
      onResponseError: (...args) => handler.onResponseError?.(...args),
      onResponseEnd(...args) {
        handler.onResponseEnd?.(...args);
        idle.add(close);
        const [oldest] = idle;
        if (idle.size > maxIdle) oldest?.();
      },
    });
  };
  return client;
}

/** Creates a connector that resolves and checks names itself, and limits the concurrent TLS handshakes. */
function createConnector({ proxy, ca }: OutgoingOptions, locate: Locate): buildConnector.connector {
  /** Addresses of the connection that is being started. Sockets read them before `open` returns. */
  let checked: readonly LookupAddress[] = [];
  const lookup: LookupFunction = (...args) => pinnedLookup(checked)(...args);
  const options = { port: 0, timeout: connectMs, allowH2: false, lookup };
  const trust = { ecdhCurve, ...(ca !== undefined && { ca: [ca].flat() }) };
  const { buildConnector } = loadUndici();
  const openPlain = buildConnector(options);
  let openSecure: buildConnector.connector | undefined;
  const limitHandshakes = createLimiter(handshakes.atOnce);

  function open(addresses: readonly LookupAddress[], ...[target, callback]: ConnectorArguments): Promise<void> {
    const settled = Promise.withResolvers<void>();
    const connect = target.protocol === "https:" ? secureConnector() : openPlain;
    checked = addresses;
    connect(target, (...answer) => {
      settled.resolve();
      callback(...answer);
    });
    checked = [];
    return settled.promise;
  }

  function secureConnector(): buildConnector.connector {
    // One context for all connections, because each context contains all certificate authorities.
    openSecure ??= buildConnector({ ...options, secureContext: createSecureContext(trust) });
    return openSecure;
  }

  async function connect(...[target, callback]: ConnectorArguments): Promise<void> {
    const { protocol, hostname: host, port } = target;
    const isSecure = protocol === "https:";
    const wanted = { host, port: Number(port || (isSecure ? 443 : 80)) };
    const located = await locate(protocol, wanted);
    const isProxied = proxy !== undefined && located === "proxy";
    const httpSocket = isProxied ? await openTunnel(proxy, ca, wanted, connectMs) : undefined;
    const addresses = located === "proxy" ? [] : located;
    const opening = () => open(addresses, { ...target, ...(httpSocket && { httpSocket }) }, callback);
    if (isSecure) await limitHandshakes(() => unlessLate(opening(), handshakes.countedMs, () => undefined));
    else await opening();
  }

  return (target, callback) => {
    connect(target, callback).catch((error: Error) => callback(error, null));
  };
}
