import { once } from "node:events";
import WebSocket from "ws";

/** Maximum milliseconds for the WebSocket handshake. */
const connectWithin = 5_000;
/** Milliseconds between two heartbeats. */
const pingEvery = 5_000;

/** Maximum message size in bytes, larger than any message of a room with one publisher. */
const maxPayload = 2 ** 20;

/**
 * LiveKit's last protocol version in which the first peer connection is for publishing only. Newer servers still
 * support this version.
 */
const version = 15;

/** Server messages that a publisher needs: SignalResponse in protobuf JSON. */
interface SignalResponse {
  readonly answer?: { readonly sdp: string };
  /** `target` is absent for the publishing connection. */
  readonly trickle?: { readonly candidateInit: string; readonly target?: string };
  readonly trackPublished?: { readonly cid: string };
  readonly refreshToken?: string;
  readonly leave?: { readonly reason?: string };
}

export interface SignalListener {
  onAnswer(sdp: string): void;
  onCandidate(candidate: string): void;
  onPublished(): void;
  /** Called with a token that replaces the previous one. */
  onToken(token: string): void;
}

/**
 * Signalling connection of a publisher to a LiveKit server. The connection is in the worker, so that no browser holds a
 * token.
 */
export class LiveKitSignal implements Disposable {
  /** Resolves with the reason when the connection has ended, or has failed. */
  readonly ended: Promise<string>;
  readonly #socket: WebSocket;
  readonly #timer: NodeJS.Timeout;

  private constructor(socket: WebSocket, listener: SignalListener) {
    this.#socket = socket;
    const { promise, resolve } = Promise.withResolvers<string>();
    this.ended = promise;
    socket.on("close", (code) => resolve(`the media server closed the connection (${code})`));
    socket.on("error", (error) => resolve(error.message));
    socket.on("message", (data, isBinary) => {
      // Binary messages precede the switch to JSON and confirm the join.
      if (isBinary) return;
      try {
        const left = receive(String(data), listener);
        if (left !== undefined) resolve(left);
      } catch (error) {
        resolve(`failed to read the media server's message: ${String(error)}`);
      }
    });
    this.#timer = setInterval(() => this.#ping(), pingEvery);
    this.#ping();
  }

  /** Joins the room of the token. */
  static async connect(url: string, token: string, listener: SignalListener): Promise<LiveKitSignal> {
    const address = new URL("rtc", url.endsWith("/") ? url : `${url}/`);
    address.search = new URLSearchParams({ protocol: String(version), auto_subscribe: "0" }).toString();
    const headers = { authorization: `Bearer ${token}` };
    const socket = new WebSocket(address, { headers, handshakeTimeout: connectWithin, maxPayload });
    await once(socket, "open");
    return new LiveKitSignal(socket, listener);
  }

  /** Address of the connected server. Undefined after the connection has closed. */
  get remote(): { readonly host: string; readonly port: number } | undefined {
    // The boundary to the underlying socket, which the types of `ws` do not expose.
    const { _socket } = this.#socket as unknown as { readonly _socket?: import("node:net").Socket };
    const { remoteAddress, remotePort } = _socket ?? {};
    return remoteAddress === undefined || remotePort === undefined
      ? undefined
      : { host: remoteAddress.replace(/^::ffff:/, ""), port: remotePort };
  }

  announce(trackId: string): void {
    this.#send({ addTrack: { cid: trackId, name: "page", type: "VIDEO", source: "SCREEN_SHARE" } });
  }

  /** Sends the SDP offer of the connection that carries the track. */
  offer(sdp: string): void {
    this.#send({ offer: { type: "offer", sdp } });
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#socket.removeAllListeners("message");
    this.#send({ leave: { reason: "CLIENT_INITIATED" } });
    this.#socket.close();
  }

  #ping(): void {
    this.#send({ pingReq: { timestamp: String(Date.now()) } });
  }

  #send(message: object): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }
}

/** Passes a message to the listener. Returns the reason if the server ends the connection. */
function receive(text: string, listener: SignalListener): string | undefined {
  // The boundary where a server message gets its type.
  const { answer, trickle, trackPublished, refreshToken, leave }: SignalResponse = JSON.parse(text);
  if (trackPublished) listener.onPublished();
  if (refreshToken !== undefined) listener.onToken(refreshToken);
  if (answer) {
    const lines = answer.sdp.split("\r\n");
    listener.onAnswer(lines.filter((line) => !/^a=(candidate|end-of-candidates)/.test(line)).join("\r\n"));
    for (const line of lines) if (line.startsWith("a=candidate:")) listener.onCandidate(line.slice("a=".length));
  }
  if (trickle && trickle.target !== "SUBSCRIBER") {
    const { candidate = "" }: { candidate?: string } = JSON.parse(trickle.candidateInit);
    if (candidate !== "") listener.onCandidate(candidate);
  }
  return leave && `the media server ended the connection (${leave.reason ?? "without a reason"})`;
}
