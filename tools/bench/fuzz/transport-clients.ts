import { once } from "node:events";
import { type ClientHttp2Session, connect } from "node:http2";
import { Pool } from "undici";
import { WebSocket } from "ws";
import { envelope } from "../../../test/hostile-bytes/bytes.ts";

/** Milliseconds to wait for a response. */
const timeout = 1_000;

/** Number of concurrent messages. */
export const atOnce = 4;

/** A client request, for any transport. */
export interface Sent {
  readonly verb: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  /** Whether the response never ends, so that its first part suffices. */
  readonly endless?: boolean;
}

let addresses = 0;

/** Uses a new client address for each request, so that no address bucket is empty. */
const from = (): Record<string, string> => {
  addresses += 1;
  return { "x-forwarded-for": `10.${(addresses >> 16) & 255}.${(addresses >> 8) & 255}.${addresses & 255}` };
};

/** Clients for all transports of a gateway. */
export class TransportClients implements Disposable {
  readonly #url: string;
  readonly #http1: Pool;
  readonly #sessions = new Map<string, ClientHttp2Session>();

  constructor(url: string) {
    this.#url = url;
    this.#http1 = new Pool(url, { connections: 8, headersTimeout: timeout, bodyTimeout: timeout });
  }

  /** Sends a request over HTTP/1.1. Resolves with its status. */
  async http1({ verb, path, headers, body, endless }: Sent): Promise<string> {
    try {
      const answer = await this.#http1.request({
        method: verb as "GET",
        path,
        headers: { ...from(), ...headers },
        body: body ?? null,
        signal: AbortSignal.timeout(timeout),
      });
      answer.body.on("error", () => undefined);
      if (endless && answer.statusCode === 200) answer.body.destroy();
      else await answer.body.dump({ limit: 2 ** 24 });
      return String(answer.statusCode);
    } catch (thrown) {
      return thrown instanceof Error ? thrown.name : "unknown";
    }
  }

  /** Sends a request over HTTP/2 without TLS. Resolves with its status. */
  async http2({ verb, path, headers, body, endless }: Sent, url = this.#url): Promise<string> {
    const session = await this.#session(url);
    const { promise, resolve } = Promise.withResolvers<string>();
    const stream = session.request({ ...from(), ...headers, ":method": verb, ":path": path });
    let status = "none";
    stream.setTimeout(timeout, () => stream.close());
    stream.on("response", (answer) => (status = String(answer["grpc-status"] ?? answer[":status"])));
    stream.on("trailers", (answer) => (status = String(answer["grpc-status"] ?? status)));
    stream.on("data", () => endless && stream.close());
    // Refused requests are answered before their body is read.
    stream.on("end", () => stream.close());
    stream.on("error", () => undefined);
    stream.on("close", () => resolve(status));
    stream.end(body);
    return promise;
  }

  async #session(url: string): Promise<ClientHttp2Session> {
    const known = this.#sessions.get(url);
    if (known && !known.closed && !known.destroyed) return known;
    const session = connect(url).on("error", () => undefined);
    this.#sessions.set(url, session);
    // An error is ignored here, because the request on a refused connection fails too.
    await Promise.race([once(session, "connect"), once(session, "close")]).catch(() => undefined);
    return session;
  }

  /**
   * Sends a message `times` times over WebSocket. Resolves when each is answered or the server has closed. Reopens
   * closed sockets for the remaining messages.
   */
  async webSocket(path: string, key: string | undefined, message: Buffer, times: number) {
    let sent = 0;
    let answers = "none";
    while (sent < times) {
      const headers = { ...from(), ...(key !== undefined && { authorization: `Bearer ${key}` }) };
      const options = { headers, perMessageDeflate: false };
      const socket = new WebSocket(`${this.#url.replace("http", "ws")}${path}`, ["pilothouse.v1"], options);
      const over = Promise.withResolvers<void>();
      let answered = 0;
      let isLate = false;
      const deadline = setTimeout(() => {
        isLate = true;
        over.resolve();
      }, timeout);
      socket.on("error", () => over.resolve());
      socket.on("close", (code) => {
        answers = String(code);
        over.resolve();
      });
      let left = times - sent;
      const sendNext = (): void => {
        if (left > 0) socket.send(message, { binary: false });
        left -= 1;
      };
      // If a message closed the previous connection, only a few messages are sent at once.
      socket.on("open", () => {
        for (let burst = sent === 0 ? times : atOnce; burst > 0; burst -= 1) sendNext();
      });
      socket.on("message", (data) => {
        answered += 1;
        deadline.refresh();
        sendNext();
        answers = /errors\/([\w-]+)/.exec(String(data).slice(0, 500))?.[1] ?? "answered";
        if (answered >= times - sent) over.resolve();
      });
      await over.promise;
      clearTimeout(deadline);
      socket.terminate();
      // Messages without a response are sent once.
      sent += isLate ? times : Math.max(1, answered);
    }
    return answers;
  }

  [Symbol.dispose](): void {
    void this.#http1.destroy();
    for (const session of this.#sessions.values()) session.destroy();
  }
}

/** Returns a Connect request: https://connectrpc.com/docs/protocol */
export function connectCall(path: string, kind: "json" | "proto", body: Buffer, streams: boolean): Sent {
  const type = streams ? `application/connect+${kind}` : `application/${kind}`;
  return {
    verb: "POST",
    path,
    headers: { "content-type": type, "connect-protocol-version": "1" },
    body: streams ? envelope(0, body) : body,
    endless: streams,
  };
}

/** Returns a gRPC request. */
export const grpcCall = (path: string, body: Buffer, streams: boolean): Sent => ({
  verb: "POST",
  path,
  headers: { "content-type": "application/grpc", te: "trailers" },
  body: envelope(0, body),
  endless: streams,
});
