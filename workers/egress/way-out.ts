import http from "node:http";
import type { LookupFunction, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Target } from "../../src/platform/outgoing/address-rules.ts";

/** The way to one target that a page may reach. */
export interface Exit {
  /** Opens a connection that carries the target's bytes. */
  connect(signal: AbortSignal): Promise<Socket>;
  /** Where plain http requests get their connections. */
  readonly agent: http.Agent;
  /** The addresses that were checked, where the agent connects by itself. */
  readonly lookup?: LookupFunction;
  /** The HTTP proxy that plain requests are sent to, in absolute form. */
  readonly proxy?: { readonly target: Target; readonly authorization: string | undefined };
  /** Hears that the target, or a proxy that works, has answered. */
  onAnswer?(): void;
  /** Hears that no answer came, or none for a while. */
  onSilence?(error?: unknown): void;
}

/** How a session's traffic leaves. */
export interface WayOut {
  /** `direct`, or for a proxy whether it works. */
  readonly state: "direct" | "proxied" | "lost";
  /** Finds the way to a target, or that pages may not reach it; rejects when its name does not resolve. */
  open(target: Target): Promise<Exit | "refused">;
  close(): void;
}

/** Keeps connections open between the requests of one session, which another may not use. */
export class DialingAgent extends http.Agent {
  readonly #dial: (target: Target) => Promise<Socket>;

  constructor(dial: (target: Target) => Promise<Socket>) {
    super({ keepAlive: true });
    this.#dial = dial;
  }

  override createConnection(
    { host, port }: http.ClientRequestArgs,
    callback?: (error: Error | null, socket: Duplex) => void,
  ): undefined {
    this.#dial({ host: host ?? "", port: Number(port) }).then(
      (socket) => callback?.(null, socket),
      // Node's type wants a socket beside an error, and its agent looks at none.
      (error: Error) => (callback as ((error: Error) => void) | undefined)?.(error),
    );
  }
}
