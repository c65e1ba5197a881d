import { once } from "node:events";
import WebSocket from "ws";

/** Milliseconds: until the server takes a connection, and between two signs of life. */
const connectWithin = 5_000;
const pingEvery = 5_000;

/** Longer than any message of a room with one publisher. */
const maxPayload = 2 ** 20;

/** LiveKit's protocol as it was when its first-come peer connection was for publishing alone; the server serves all since. */
const version = 15;

/** What the server says, as far as a publisher listens: SignalResponse in the JSON of its protobuf. */
interface SignalResponse {
  readonly answer?: { readonly sdp: string };
  /** `target` is absent for the connection that publishes. */
  readonly trickle?: { readonly candidateInit: string; readonly target?: string };
  readonly trackPublished?: { readonly cid: string };
  readonly refreshToken?: string;
  readonly leave?: { readonly reason?: string };
}

/** Hears what the server says. */
export interface SignalListener {
  onAnswer(sdp: string): void;
  onCandidate(candidate: string): void;
  onPublished(): void;
  /** A token in place of that by which it was joined. */
  onToken(token: string): void;
}

/** The signalling of a LiveKit server for one who publishes, spoken from here: what holds a token is no browser. */
export class LiveKitSignal implements Disposable {
  /** Resolves, with why, when the server is with us no more. */
  readonly ended: Promise<string>;
  readonly #socket: WebSocket;
  readonly #timer: NodeJS.Timeout;

  private constructor(socket: WebSocket, listener: SignalListener) {
    this.#socket = socket;
    const { promise, resolve } = Promise.withResolvers<string>();
    this.ended = promise;
    socket.on("close", (code) => resolve(`the media server has closed the connection (${code})`));
    socket.on("error", (error) => resolve(error.message));
    socket.on("message", (data, isBinary) => {
      // What is said before it has heard that we speak JSON: that we have joined.
      if (isBinary) return;
      try {
        const left = hear(String(data), listener);
        if (left !== undefined) resolve(left);
      } catch (error) {
        resolve(`the media server was not understood: ${String(error)}`);
      }
    });
    this.#timer = setInterval(() => this.#ping(), pingEvery);
    this.#ping();
  }

  /** Joins the room that the token is for. */
  static async connect(url: string, token: string, listener: SignalListener): Promise<LiveKitSignal> {
    const address = new URL("rtc", url.endsWith("/") ? url : `${url}/`);
    address.search = new URLSearchParams({ protocol: String(version), auto_subscribe: "0" }).toString();
    const headers = { authorization: `Bearer ${token}` };
    const socket = new WebSocket(address, { headers, handshakeTimeout: connectWithin, maxPayload });
    await once(socket, "open");
    return new LiveKitSignal(socket, listener);
  }

  /** The address at which the server was reached. */
  get remote(): { readonly host: string; readonly port: number } | undefined {
    // The boundary to the socket below, which `ws` keeps for itself in its types.
    const { _socket } = this.#socket as unknown as { readonly _socket?: import("node:net").Socket };
    const { remoteAddress, remotePort } = _socket ?? {};
    return remoteAddress === undefined || remotePort === undefined
      ? undefined
      : { host: remoteAddress.replace(/^::ffff:/, ""), port: remotePort };
  }

  /** Says that a track of pictures of a screen is to come. */
  announce(trackId: string): void {
    this.#send({ addTrack: { cid: trackId, name: "page", type: "VIDEO", source: "SCREEN_SHARE" } });
  }

  /** Offers the connection that the track comes by. */
  offer(sdp: string): void {
    this.#send({ offer: { type: "offer", sdp } });
  }

  /** Leaves the room. */
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

/** Tells the listener what was said; gives why the server ends it, if it does. */
function hear(text: string, listener: SignalListener): string | undefined {
  // The boundary where the server's word is taken for what a message is.
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
  return leave && `the media server has ended it (${leave.reason ?? "without a reason"})`;
}
