import { EventEmitter, once } from "node:events";
import { fromBinary } from "@bufbuild/protobuf";
import { WebSocket } from "ws";
import { JoinResponseSchema, type LiveFrame } from "../../src/gen/pilothouse/v1/live_pb.ts";

/** Text message to a viewer. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into messages of every shape.
export type LiveMessage = Readonly<Record<string, any>>;

/** Viewer that implements the protocol itself. */
export class LiveClient implements Disposable {
  readonly socket: WebSocket;
  readonly received: LiveMessage[] = [];
  readonly frames: LiveFrame[] = [];
  /** Close code and reason of the connection. */
  readonly closed: Promise<{ code: number; reason: string }>;
  /** Acknowledges each frame on arrival. */
  acknowledges: boolean;
  readonly #news = new EventEmitter();

  private constructor(socket: WebSocket, acknowledges: boolean) {
    this.socket = socket;
    this.acknowledges = acknowledges;
    socket.on("message", (data: Buffer, isBinary: boolean) => this.#take(data, isBinary));
    socket.on("error", () => undefined);
    this.closed = new Promise((resolve) => {
      socket.once("close", (code, reason) => resolve({ code, reason: String(reason) }));
    });
  }

  /** Connects and joins. Rejects if the handshake is refused. */
  static async join(url: string, key: string, join: object = {}, { acknowledges = true } = {}): Promise<LiveClient> {
    const socket = new WebSocket(`${url.replace("http", "ws")}/v1/live`, ["pilothouse.v1", `bearer.${key}`]);
    const client = new LiveClient(socket, acknowledges);
    await once(socket, "open");
    client.send({ join });
    return client;
  }

  send(message: object): void {
    this.socket.send(JSON.stringify(message));
  }

  /** Returns the newest received message that matches, or the next one. */
  async receive(isMeant: (message: LiveMessage) => boolean): Promise<LiveMessage> {
    return this.#until(() => this.received.findLast(isMeant));
  }

  /** Returns the newest frame if it matches, or the next one that does. */
  async see(isMeant: (frame: LiveFrame) => boolean = () => true): Promise<LiveFrame> {
    return this.#until(() => [this.frames.at(-1)].find((frame) => frame && isMeant(frame)));
  }

  async #until<Found>(look: () => Found | undefined): Promise<Found> {
    for (;;) {
      const found = look();
      if (found !== undefined) return found;
      await Promise.race([
        once(this.#news, "message"),
        this.closed.then(({ code, reason }) => {
          throw new Error(`the connection was closed: ${code} ${reason}`);
        }),
      ]);
    }
  }

  #take(data: Buffer, isBinary: boolean): void {
    if (isBinary) {
      const { frame } = fromBinary(JoinResponseSchema, data);
      if (!frame) throw new Error("a binary frame without a frame");
      this.frames.push(frame);
      if (this.acknowledges) this.send({ ack: { sequence: Number(frame.sequence) } });
    } else {
      this.received.push(JSON.parse(data.toString()));
    }
    this.#news.emit("message");
  }

  [Symbol.dispose](): void {
    this.socket.terminate();
  }
}
