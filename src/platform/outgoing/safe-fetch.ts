import { once } from "node:events";
import http from "node:http";
import https from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Deadline, raceSignal } from "../deadline.ts";
import { type AddressRules, makeAddressRules, normaliseHost, type Target } from "./address-rules.ts";
import { ownAddresses, pinnedLookup, type Resolve, resolveName, resolveTarget } from "./target-resolution.ts";

/** Why a request came to nothing; `refused` is our own rule, everything else is the other side's doing. */
export type FetchFaultReason = "refused" | "unreachable" | "untrusted" | "timeout" | "too_large" | "broken";

/** A request to an address of a user's choice that came to nothing, with the rest of a sentence that begins with it. */
export class FetchFault extends Error {
  override readonly name = "FetchFault";
  readonly reason: FetchFaultReason;

  constructor(reason: FetchFaultReason, message: string, cause?: unknown) {
    super(message, { cause });
    this.reason = reason;
  }
}

/** Milliseconds that each part of a request may take. */
export interface FetchTimes {
  /** To resolve the name, to connect and to agree on TLS. */
  readonly connect: number;
  /** From the end of that until the answer's head has come; the request's body is sent meanwhile. */
  readonly head: number;
  /** Between two parts of the answer's body. */
  readonly silence: number;
  /** For all of it. */
  readonly whole: number;
}

/** A request to an address of a user's choice. */
export interface FetchRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array>;
  /** Ends the request, and the reading of its answer, with its reason. */
  readonly signal: AbortSignal;
  readonly times: FetchTimes;
  /** How long the answer's body may be. */
  readonly maxBytes: number;
}

/** An answer whose head has come. A body that is not read to its end must be cancelled. */
export interface FetchAnswer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  /** The bytes as they come; fails with a FetchFault. Leaving the loop ends the connection. */
  readonly body: AsyncGenerator<Uint8Array, void, undefined>;
  /** Ends the connection without reading on. */
  cancel(): void;
}

/** What decides where requests may go. */
export interface SafeFetchOptions {
  /** Networks and targets that may be reached although private, and without TLS (`WEBHOOK_ALLOW`). */
  readonly allow: readonly string[];
  readonly resolve?: Resolve;
  /** Authorities that are trusted instead of the public ones. */
  readonly ca?: string;
}

interface Destination {
  readonly url: URL;
  readonly target: Target;
  readonly lookup: LookupFunction;
}

/** A connection that nobody uses is kept for this long: most servers keep theirs for 5 s. */
const keepMs = 4_000;

/** Below these a port belongs to some other protocol, which our bytes could mean something in. */
const firstFreePort = 1_024;
const webPorts = new Set([443, 8_443]);

/**
 * Sends requests to addresses that users choose. Each name is resolved for each request, all its addresses are checked,
 * and only a checked one is connected to. No redirect is followed, and no proxy of the environment is asked.
 */
export class SafeFetch implements Disposable {
  readonly #rules: AddressRules;
  readonly #resolve: Resolve;
  readonly #agents: Readonly<Record<string, http.Agent>>;

  constructor({ allow, resolve = resolveName, ca }: SafeFetchOptions) {
    this.#rules = makeAddressRules({ allow, ownAddresses: ownAddresses() });
    this.#resolve = resolve;
    const kept = { keepAlive: true, timeout: keepMs };
    this.#agents = { "http:": new http.Agent(kept), "https:": new https.Agent({ ...kept, ...(ca && { ca }) }) };
  }

  /** Fails with a FetchFault where a request would be refused, or (`unreachable`) its name does not resolve now. */
  async check(address: string): Promise<void> {
    await this.#locate(address);
  }

  /** Sends a request, and gives the answer when its head has come. Fails with a FetchFault, or the signal's reason. */
  async send(address: string, request: FetchRequest): Promise<FetchAnswer> {
    const { times, signal } = request;
    const whole = new Deadline(times.whole, () => lateBy("was not done", times.whole), [signal]);
    try {
      const response = await this.#head(address, request, whole.signal);
      return {
        status: response.statusCode ?? 0,
        headers: response.headers,
        body: readBody(response, request, whole),
        cancel: () => {
          whole[Symbol.dispose]();
          response.destroy();
        },
      };
    } catch (thrown) {
      whole[Symbol.dispose]();
      throw asFault(thrown, whole.signal);
    }
  }

  /** Ends all connections. */
  [Symbol.dispose](): void {
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }

  async #head(address: string, request: FetchRequest, signal: AbortSignal): Promise<http.IncomingMessage> {
    const { times } = request;
    using connecting = new Deadline(times.connect, () => lateBy("could not be connected to", times.connect), [signal]);
    const destination = await raceSignal(this.#locate(address), connecting.signal);
    const outgoing = this.#open(destination, request);
    const stop = () => outgoing.destroy();
    signal.addEventListener("abort", stop, { once: true });
    outgoing.once("close", () => signal.removeEventListener("abort", stop));
    // Until somebody waits for it again: an error after the answer's head shows in its body.
    outgoing.on("error", () => undefined);
    const answered = once(outgoing, "response");
    try {
      await Promise.race([raceSignal(connected(outgoing), connecting.signal), answered]);
      connecting[Symbol.dispose]();
      using answering = new Deadline(times.head, () => lateBy("did not answer", times.head), [signal]);
      const sent = sendBody(outgoing, request.body);
      // The boundary where an event's arguments get their type. A server may answer before it has read everything.
      const [response] = (await raceSignal(Promise.race([answered, sent.then(() => answered)]), answering.signal)) as [
        http.IncomingMessage,
      ];
      sent.catch(() => undefined);
      return response;
    } catch (thrown) {
      answered.catch(() => undefined);
      outgoing.destroy();
      throw thrown;
    }
  }

  #open({ url, target, lookup }: Destination, { method, headers, body }: FetchRequest): http.ClientRequest {
    const length = typeof body === "string" || body instanceof Uint8Array ? Buffer.byteLength(body) : undefined;
    const client = url.protocol === "https:" ? https : http;
    return client.request({
      ...target,
      ...(isIP(target.host) === 0 && { servername: target.host }),
      lookup,
      agent: this.#agents[url.protocol],
      method,
      path: `${url.pathname}${url.search}`,
      headers: {
        ...headers,
        ...(length !== undefined && { "content-length": length }),
        host: url.host,
        "accept-encoding": "identity",
      },
    });
  }

  async #locate(address: string): Promise<Destination> {
    const { url, target } = readAddress(address);
    const resolution = await resolveTarget(target, this.#rules, () => false, this.#resolve).catch((error: unknown) => {
      throw new FetchFault("unreachable", `does not resolve (${codeOf(error) ?? "no reason given"})`, error);
    });
    if (resolution.kind === "refused") throw new FetchFault("refused", "is not on the public internet");
    const isNamed = this.#rules.allowsTarget(target);
    const isExcepted = isNamed || resolution.addresses.every(({ address }) => this.#rules.isException(address));
    if (url.protocol !== "https:" && !isExcepted) throw new FetchFault("refused", "does not begin with https://");
    if (!isNamed && target.port < firstFreePort && !webPorts.has(target.port)) {
      throw new FetchFault("refused", "has a port other than 443, 8443 and those from 1024");
    }
    return { url, target, lookup: pinnedLookup(resolution.addresses) };
  }
}

function readAddress(address: string): { url: URL; target: Target } {
  const url = URL.parse(address);
  const host = url && normaliseHost(url.hostname);
  if (!host || (url.protocol !== "https:" && url.protocol !== "http:")) {
    throw new FetchFault("refused", "is not an https address");
  }
  if (url.username !== "" || url.password !== "") throw new FetchFault("refused", "has a name or a password in it");
  return { url, target: { host, port: Number(url.port || (url.protocol === "https:" ? 443 : 80)) } };
}

/** Resolves when a request has a connection that can carry it. */
async function connected(outgoing: http.ClientRequest): Promise<void> {
  const [socket] = (await once(outgoing, "socket")) as [import("node:tls").TLSSocket];
  if (!outgoing.reusedSocket) await once(socket, socket.encrypted ? "secureConnect" : "connect");
}

async function sendBody(outgoing: http.ClientRequest, body: FetchRequest["body"]): Promise<void> {
  if (body === undefined || typeof body === "string" || body instanceof Uint8Array) outgoing.end(body);
  else await pipeline(Readable.from(body, { objectMode: false }), outgoing);
}

async function* readBody(
  response: http.IncomingMessage,
  { times, maxBytes }: FetchRequest,
  whole: Deadline,
): AsyncGenerator<Uint8Array, void, undefined> {
  const chunks: AsyncIterator<Buffer> = response[Symbol.asyncIterator]();
  let bytes = 0;
  try {
    for (;;) {
      using silent = new Deadline(times.silence, () => lateBy("fell silent", times.silence), [whole.signal]);
      const { done, value } = await raceSignal(chunks.next(), silent.signal);
      if (done) return;
      bytes += value.length;
      if (bytes > maxBytes) throw new FetchFault("too_large", `answered with more than ${maxBytes} bytes`);
      yield value;
    }
  } catch (thrown) {
    throw asFault(thrown, whole.signal);
  } finally {
    whole[Symbol.dispose]();
    if (!response.complete) response.destroy();
  }
}

function lateBy(what: string, ms: number): FetchFault {
  return new FetchFault("timeout", `${what} within ${ms / 1_000} s`);
}

/** What TLS says when the other side is not who it should be. */
const untrusted = /^(ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|EPROTO$)/;

const unreachable = new Set(["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "ENOTFOUND", "ETIMEDOUT", "EADDRNOTAVAIL"]);

function asFault(thrown: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (thrown instanceof FetchFault) return thrown;
  const code = codeOf(thrown);
  // What the request's own body has thrown is its sender's.
  if (code === undefined) return thrown;
  if (untrusted.test(code)) return new FetchFault("untrusted", `cannot be trusted (${code})`, thrown);
  if (unreachable.has(code)) return new FetchFault("unreachable", `cannot be reached (${code})`, thrown);
  if (code === "HPE_HEADER_OVERFLOW") return new FetchFault("too_large", "answered with too large a head", thrown);
  return new FetchFault("broken", `broke off, or does not speak HTTP (${code})`, thrown);
}

/** Several addresses tried in turn end in an AggregateError, whose first cause tells most. */
function codeOf(error: unknown): string | undefined {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  return first instanceof Error && "code" in first ? String(first.code) : undefined;
}
