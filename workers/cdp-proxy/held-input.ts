import type { ClientCommand, Params } from "./client-command.ts";

/** Command that releases a key or button held by a client. */
interface Held {
  readonly method: string;
  readonly params: Params;
  readonly sessionId: string | undefined;
}

/** Sends a command. Resolves with the browser's answer. */
type Send = (command: Held) => Promise<unknown>;

/** Tracks a client's pending input commands, and the keys and buttons that the client holds down. */
export class HeldInput {
  readonly #send: Send;
  readonly #open = new Set<Promise<unknown>>();
  readonly #held = new Map<string, Held>();

  constructor(send: Send) {
    this.#send = send;
  }

  record({ method, sessionId, parse }: ClientCommand, answered: Promise<unknown>): void {
    this.#open.add(answered);
    void answered.then(() => this.#open.delete(answered));
    const params = parse();
    if (method === "Input.dispatchMouseEvent") {
      const key = `${sessionId} mouse ${String(params.button)}`;
      const release = { method, sessionId, params: { ...params, type: "mouseReleased" } };
      this.#hold(key, params.type === "mousePressed", params.type === "mouseReleased", release);
    } else if (method === "Input.dispatchKeyEvent") {
      const key = `${sessionId} key ${String(params.code ?? params.key)}`;
      const isDown = params.type === "keyDown" || params.type === "rawKeyDown";
      const { text: _text, unmodifiedText: _unmodified, ...rest } = params;
      this.#hold(key, isDown, params.type === "keyUp", { method, sessionId, params: { ...rest, type: "keyUp" } });
    }
  }

  /** Releases all keys and buttons. Resolves when the browser has answered all input commands of the client. */
  async releaseAll(): Promise<void> {
    const releases = [...this.#held.values()].map((held) => this.#send(held));
    this.#held.clear();
    await Promise.all([...this.#open, ...releases]);
  }

  #hold(key: string, isDown: boolean, isUp: boolean, release: Held): void {
    if (isDown) this.#held.set(key, release);
    if (isUp) this.#held.delete(key);
  }
}
