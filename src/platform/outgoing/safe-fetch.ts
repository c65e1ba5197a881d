import type { LookupAddress } from "node:dns";
import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";
import { Readable } from "node:stream";
import type { Agent, Dispatcher } from "undici";
import {
  type AddressRules,
  formatTarget,
  type HostPort,
  isPrivateName,
  makeAddressRules,
  normaliseHost,
} from "./address-rules.ts";
import { asFault, codeOf, FetchFault, isReset } from "./fetch-fault.ts";
import { keepConnections, type ObservedRequest } from "./kept-connections.ts";
import type { OutgoingOptions } from "./outgoing-options.ts";
import { type FetchTimes, RequestTime } from "./request-time.ts";
import { createDnsResolve, ownAddresses, type Resolve, resolveName, resolveTarget } from "./target-resolution.ts";

/** A request to a user-supplied URL. */
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

/** A response after the arrival of its headers. Callers must read the body to its end or call `cancel`. */
export interface FetchAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Streams the body. Throws a FetchFault or the signal's reason. Leaving the loop closes the connection. */
  readonly body: AsyncGenerator<Uint8Array, void, undefined>;
  /** Closes the connection. The body then ends without an error. */
  cancel(): void;
}

/** Options that determine permitted destinations. */
export interface SafeFetchOptions extends OutgoingOptions {
  /** Private networks and targets that are allowed, also without TLS (`WEBHOOK_ALLOW`). */
  readonly allow: readonly string[];
  /** Replaces all name resolution. */
  readonly resolve?: Resolve;
  /** Name servers for public names, such as `192.0.2.1:53`. Default: those of the machine. */
  readonly nameServers?: readonly string[];
}

/** A parsed URL, and its host and port. */
interface Address {
  readonly url: URL;
  readonly target: HostPort;
}

/** Lower ports belong to other protocols, which might interpret HTTP bytes as commands. */
const firstFreePort = 1_024;
const webPorts = new Set([443, 8_443]);

/** Maximum number of interim responses such as `103 Early Hints`, each of which takes memory. */
const maxInterim = 8;

/**
 * Sends requests to user-supplied URLs. Resolves names for each connection, checks all IP addresses, and connects only
 * to checked addresses. With a proxy, names that may be public are resolved by the proxy instead, and only IP addresses
 * in URLs are checked. Does not follow redirects. Ignores the proxy variables of the environment.
 */
export class SafeFetch implements Disposable {
  readonly #rules: AddressRules;
  readonly #resolve: Resolve | undefined;
  readonly #dnsResolve: Resolve;
  readonly #outgoing: OutgoingOptions;
  #agent: Agent | undefined;
  #isClosed = false;
  readonly #hasProxy: boolean;

  constructor({ allow, resolve, nameServers, ...outgoing }: SafeFetchOptions) {
    this.#rules = makeAddressRules({ allow, ownAddresses: ownAddresses() });
    this.#resolve = resolve;
    this.#dnsResolve = createDnsResolve(nameServers);
    this.#hasProxy = outgoing.proxy !== undefined;
    this.#outgoing = outgoing;
  }

  /** Rejects with a FetchFault if a request would be refused or the name does not resolve (`name_not_resolved`). */
  async check(address: string): Promise<void> {
    const { url, target } = readAddress(address);
    await this.#locate(url.protocol, target);
  }

  /** Sends a request. Resolves when the response headers arrive. Rejects with a FetchFault or the signal's reason. */
  async send(address: string, request: FetchRequest): Promise<FetchAnswer> {
    const time = new RequestTime(request.times, request.signal);
    try {
      const { statusCode: status, headers, body } = await this.#answer(readAddress(address), request, time);
      let isLeft = false;
      return {
        status,
        headers,
        body: readBody(body, request.maxBytes, time, () => isLeft),
        cancel: () => {
          isLeft = true;
          time[Symbol.dispose]();
          body.destroy();
        },
      };
    } catch (thrown) {
      time[Symbol.dispose]();
      throw faultOf(thrown, time.signal);
    }
  }

  /** Closes all connections. */
  [Symbol.dispose](): void {
    this.#isClosed = true;
    void this.#agent?.destroy();
  }

  /** Creates the agent at the first request, because its package is slow to load. */
  #openAgent(): Agent {
    if (this.#isClosed) throw new Error("the SafeFetch has been disposed of");
    this.#agent ??= keepConnections(this.#outgoing, (protocol, target) => this.#locate(protocol, target));
    return this.#agent;
  }

  async #answer({ url, target }: Address, request: FetchRequest, time: RequestTime): Promise<Dispatcher.ResponseData> {
    const { method, headers, body } = request;
    let isReused = false;
    let interim = 0;
    const options: ObservedRequest = {
      origin: `${url.protocol}//${formatTarget(target)}`,
      path: `${url.pathname}${url.search}`,
      method,
      headers: { ...headers, host: undefined, "accept-encoding": "identity" },
      body: isWhole(body) ? (body ?? null) : Readable.from(body, { objectMode: false }),
      signal: time.signal,
      onSend(reused) {
        isReused = reused;
        time.begin("head");
      },
      onInfo() {
        interim += 1;
        if (interim > maxInterim) throw new FetchFault("too_large", "sends too many interim responses");
      },
    };
    for (;;) {
      try {
        time.begin("connect");
        return await this.#openAgent().request(options);
      } catch (thrown) {
        // The server closed a kept connection. Retries use the few other kept connections, then a new one.
        if (!isReused || !isReset(thrown) || !isWhole(body)) throw thrown;
        isReused = false;
      }
    }
  }

  async #locate(protocol: string, target: HostPort): Promise<readonly LookupAddress[] | "proxy"> {
    const isNamed = this.#rules.allowsTarget(target);
    const isPrivate = isPrivateName(target.host);
    if (this.#hasProxy && !isNamed && !isPrivate && !this.#rules.isException(target.host)) {
      if (isIP(target.host) !== 0 && !this.#rules.allowsAddress(target.host))
        throw notAllowed("is not on the public internet");
      assertPublicUse(protocol, target);
      return "proxy";
    }
    const resolve = this.#resolve ?? (isNamed || isPrivate ? resolveName : this.#dnsResolve);
    const resolution = await resolveTarget(target, this.#rules, () => false, resolve).catch(
      (error: unknown) => ({ kind: "unresolved", error }) as const,
    );
    const isUnresolved = resolution.kind === "unresolved";
    if (resolution.kind === "refused" || (isUnresolved && isPrivate && !isNamed)) {
      throw notAllowed("is not on the public internet");
    }
    const areExcepted = !isUnresolved && resolution.addresses.every(({ address }) => this.#rules.isException(address));
    if (!isNamed) assertPublicUse(areExcepted ? "https:" : protocol, target);
    if (!isUnresolved) return resolution.addresses;
    const code = codeOf(resolution.error) ?? "no reason given";
    throw new FetchFault("name_not_resolved", `does not resolve (${code})`, resolution.error);
  }
}

function assertPublicUse(protocol: string, { port }: HostPort): void {
  if (protocol !== "https:") throw notAllowed("does not start with https://");
  if (port < firstFreePort && !webPorts.has(port)) throw notAllowed("has a port below 1024 other than 443");
}

function notAllowed(message: string): FetchFault {
  return new FetchFault("address_not_allowed", message);
}

function readAddress(address: string): Address {
  const url = URL.parse(address);
  const host = url && normaliseHost(url.hostname);
  if (!host || (url.protocol !== "https:" && url.protocol !== "http:")) {
    throw notAllowed("is not an https URL");
  }
  if (url.username !== "" || url.password !== "") throw notAllowed("contains a user name or password");
  return { url, target: { host, port: Number(url.port || (url.protocol === "https:" ? 443 : 80)) } };
}

/** Returns whether a body is in memory, so that it can be sent again. */
function isWhole(body: FetchRequest["body"]): body is string | Uint8Array | undefined {
  return body === undefined || typeof body === "string" || body instanceof Uint8Array;
}

async function* readBody(
  body: Readable,
  maxBytes: number,
  time: RequestTime,
  isLeft: () => boolean,
): AsyncGenerator<Uint8Array, void, undefined> {
  let bytes = 0;
  try {
    time.begin("silence");
    for await (const chunk of body) {
      yield chunk.subarray(0, maxBytes - bytes);
      bytes += chunk.length;
      if (bytes > maxBytes) throw new FetchFault("too_large", `sent more than ${maxBytes} bytes`);
      time.begin("silence");
    }
  } catch (thrown) {
    if (!isLeft()) throw faultOf(thrown, time.signal);
  } finally {
    time[Symbol.dispose]();
  }
}

/** Returns the abort reason if the signal aborted, because the error then follows from the abort. */
function faultOf(thrown: unknown, signal: AbortSignal): unknown {
  return signal.aborted ? signal.reason : asFault(thrown);
}
