import type { LookupAddress } from "node:dns";
import http from "node:http";
import https from "node:https";
import { isIP } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { raceSignal } from "../deadline.ts";
import { type AddressRules, type HostPort, isPrivateName, makeAddressRules, normaliseHost } from "./address-rules.ts";
import { asFault, codeOf, FetchFault, isReset } from "./fetch-fault.ts";
import { type KeptConnections, keepConnections, type PinnedRequest } from "./kept-connections.ts";
import { type FetchTimes, RequestTime } from "./request-time.ts";
import {
  createDnsResolve,
  ownAddresses,
  pinnedLookup,
  type Resolve,
  resolveName,
  resolveTarget,
} from "./target-resolution.ts";

/** A request to a user-supplied address. */
export interface FetchRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array>;
  /** Aborts the request and its response. */
  readonly signal: AbortSignal;
  readonly times: FetchTimes;
  /** Maximum size of the response body. */
  readonly maxBytes: number;
}

/** A response whose headers have arrived. Callers must read the body to its end or call `cancel`. */
export interface FetchAnswer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  /** Streams the body. Throws FetchFault. Leaving the loop closes the connection. */
  readonly body: AsyncGenerator<Uint8Array, void, undefined>;
  /** Closes the connection. The body then ends without an error. */
  cancel(): void;
}

/** Options that determine permitted destinations. */
export interface SafeFetchOptions {
  /** Private networks and targets that are allowed, also without TLS (`WEBHOOK_ALLOW`). */
  readonly allow: readonly string[];
  /** Replaces all name resolution. */
  readonly resolve?: Resolve;
  /** Name servers for public names, such as `192.0.2.1:53`. Default: those of the machine. */
  readonly nameServers?: readonly string[];
  /** Replaces the trusted certificate authorities. */
  readonly ca?: string;
}

interface Destination {
  readonly url: URL;
  readonly target: HostPort;
  readonly addresses: readonly LookupAddress[];
}

/** Lower ports belong to other protocols, which might interpret HTTP bytes as commands. */
const firstFreePort = 1_024;
const webPorts = new Set([443, 8_443]);

/** Maximum number of interim responses such as `103 Early Hints`, each of which takes memory. */
const maxInterim = 8;

/**
 * Sends requests to user-supplied addresses. Resolves names for each request, checks all addresses, and connects only
 * to checked ones. Ignores redirects and proxy variables.
 */
export class SafeFetch implements Disposable {
  readonly #rules: AddressRules;
  readonly #resolve: Resolve | undefined;
  readonly #dnsResolve: Resolve;
  readonly #connections: KeptConnections;

  constructor({ allow, resolve, ca, nameServers }: SafeFetchOptions) {
    this.#rules = makeAddressRules({ allow, ownAddresses: ownAddresses() });
    this.#resolve = resolve;
    this.#dnsResolve = createDnsResolve(nameServers);
    this.#connections = keepConnections(ca);
  }

  /** Rejects with a FetchFault if a request would be refused or the name does not resolve (`name_not_resolved`). */
  async check(address: string): Promise<void> {
    await this.#locate(address);
  }

  /** Sends a request. Resolves when the response headers arrive. Rejects with a FetchFault or the signal's reason. */
  async send(address: string, request: FetchRequest): Promise<FetchAnswer> {
    const time = new RequestTime(request.times, request.signal);
    try {
      time.begin("connect");
      const destination = await raceSignal(this.#locate(address), time.signal);
      const response = await this.#answer(destination, request, time);
      let isLeft = false;
      return {
        status: response.statusCode ?? 0,
        headers: response.headers,
        body: readBody(response, request.maxBytes, time, () => isLeft),
        cancel: () => {
          isLeft = true;
          time[Symbol.dispose]();
          response.destroy();
        },
      };
    } catch (thrown) {
      time[Symbol.dispose]();
      throw faultOf(thrown, time.signal);
    }
  }

  /** Closes all connections. */
  [Symbol.dispose](): void {
    this.#connections.close();
  }

  async #answer(destination: Destination, request: FetchRequest, time: RequestTime): Promise<http.IncomingMessage> {
    const outgoing = this.#open(destination, request);
    try {
      return await raceSignal(headOf(outgoing, request.body, time), time.signal);
    } catch (thrown) {
      outgoing.destroy();
      if (!outgoing.reusedSocket || !isReset(thrown) || !isWhole(request.body)) throw thrown;
      // The server closed a kept connection. Retries use the few other kept connections, then a new one.
      return this.#answer(destination, request, time);
    }
  }

  #open({ url, target, addresses }: Destination, { method, headers, body }: FetchRequest): http.ClientRequest {
    const pinned: PinnedRequest = {
      ...target,
      ...(isIP(target.host) === 0 && { servername: target.host }),
      addresses: addresses.map(({ address }) => address).sort(),
      lookup: pinnedLookup(addresses),
      agent: this.#connections.of(url.protocol),
      method,
      path: `${url.pathname}${url.search}`,
      headers: {
        ...headers,
        ...(body !== undefined && isWhole(body) && { "content-length": Buffer.byteLength(body) }),
        host: url.host,
        "accept-encoding": "identity",
      },
    };
    return url.protocol === "https:" ? https.request(pinned) : http.request(pinned);
  }

  async #locate(address: string): Promise<Destination> {
    const { url, target } = readAddress(address);
    const isNamed = this.#rules.allowsTarget(target);
    const isPrivate = isPrivateName(target.host);
    const resolve = this.#resolve ?? (isNamed || isPrivate ? resolveName : this.#dnsResolve);
    const resolution = await resolveTarget(target, this.#rules, () => false, resolve).catch(
      (error: unknown) => ({ kind: "unresolved", error }) as const,
    );
    const isUnresolved = resolution.kind === "unresolved";
    if (resolution.kind === "refused" || (isUnresolved && isPrivate && !isNamed)) {
      throw notAllowed("is not on the public internet");
    }
    const areExcepted = !isUnresolved && resolution.addresses.every(({ address }) => this.#rules.isException(address));
    if (url.protocol !== "https:" && !isNamed && !areExcepted) throw notAllowed("does not start with https://");
    if (!isNamed && target.port < firstFreePort && !webPorts.has(target.port)) {
      throw notAllowed("has a port below 1024 other than 443");
    }
    if (!isUnresolved) return { url, target, addresses: resolution.addresses };
    const code = codeOf(resolution.error) ?? "no reason given";
    throw new FetchFault("name_not_resolved", `does not resolve (${code})`, resolution.error);
  }
}

function notAllowed(message: string): FetchFault {
  return new FetchFault("address_not_allowed", message);
}

function readAddress(address: string): { url: URL; target: HostPort } {
  const url = URL.parse(address);
  const host = url && normaliseHost(url.hostname);
  if (!host || (url.protocol !== "https:" && url.protocol !== "http:")) {
    throw notAllowed("is not an https URL");
  }
  if (url.username !== "" || url.password !== "") throw notAllowed("contains a user name or password");
  return { url, target: { host, port: Number(url.port || (url.protocol === "https:" ? 443 : 80)) } };
}

/** Sends the body and returns the response headers, which may arrive before the body was sent. */
function headOf(
  outgoing: http.ClientRequest,
  body: FetchRequest["body"],
  time: RequestTime,
): Promise<http.IncomingMessage> {
  time.signal.addEventListener("abort", () => outgoing.destroy(), { once: true });
  const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
  outgoing.once("response", resolve);
  // Stays registered, because errors may follow the headers. The body reports them.
  outgoing.on("error", reject);
  outgoing.once("socket", (socket) => {
    if (outgoing.reusedSocket) time.begin("head");
    else socket.once("encrypted" in socket ? "secureConnect" : "connect", () => time.begin("head"));
  });
  let interim = 0;
  outgoing.on("information", () => {
    interim += 1;
    if (interim > maxInterim) reject(new FetchFault("too_large", "sends too many interim responses"));
  });
  // Without this listener, Node.js would wait until the timeout.
  outgoing.once("upgrade", (_response, socket) => {
    socket.destroy();
    reject(new FetchFault("not_http", "switched to another protocol"));
  });
  sendBody(outgoing, body).catch(reject);
  return promise;
}

/** Returns whether a body is in memory, so that it can be sent again. */
function isWhole(body: FetchRequest["body"]): body is string | Uint8Array | undefined {
  return body === undefined || typeof body === "string" || body instanceof Uint8Array;
}

async function sendBody(outgoing: http.ClientRequest, body: FetchRequest["body"]): Promise<void> {
  if (isWhole(body)) outgoing.end(body);
  else await pipeline(Readable.from(body, { objectMode: false }), outgoing);
}

async function* readBody(
  response: http.IncomingMessage,
  maxBytes: number,
  time: RequestTime,
  isLeft: () => boolean,
): AsyncGenerator<Uint8Array, void, undefined> {
  const chunks: AsyncIterator<Buffer> = response[Symbol.asyncIterator]();
  let bytes = 0;
  try {
    for (;;) {
      time.begin("silence");
      const { done, value } = await raceSignal(chunks.next(), time.signal);
      if (done) return;
      yield value.subarray(0, maxBytes - bytes);
      bytes += value.length;
      if (bytes > maxBytes) throw new FetchFault("too_large", `sent more than ${maxBytes} bytes`);
    }
  } catch (thrown) {
    if (!isLeft()) throw faultOf(thrown, time.signal);
  } finally {
    time[Symbol.dispose]();
    if (!response.complete) response.destroy();
  }
}

/** Returns the abort reason if the signal aborted, because the error then follows from the abort. */
function faultOf(thrown: unknown, signal: AbortSignal): unknown {
  return signal.aborted ? signal.reason : asFault(thrown);
}
