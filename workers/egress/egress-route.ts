import http from "node:http";
import type { LookupFunction, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { HostPort } from "../../src/platform/outgoing/address-rules.ts";

/** Egress to one permitted target. */
export interface Exit {
  /** Opens a connection to the target, directly or tunnelled. */
  connect(signal: AbortSignal): Promise<Socket>;
  readonly agent: http.Agent;
  /** Lookup pinned to the checked addresses, if the agent connects directly. */
  readonly lookup?: LookupFunction;
  /** HTTP proxy that receives plain http requests in absolute form. */
  readonly proxy?: { readonly target: HostPort; readonly authorization: string | undefined };
  /** Called when the target or a working proxy has answered. */
  onAnswer?(): void;
  /** Called if the connection fails, or if a response is late. */
  onSilence?(error?: unknown): void;
}

/** How a session's traffic leaves the worker: directly, or through the session's proxy. */
export interface EgressRoute {
  /** `direct`, or the state of the proxy. */
  readonly state: "direct" | "proxied" | "lost";
  /** Resolves with the exit to a target, or "refused" for a forbidden target. Rejects if a required lookup fails. */
  open(target: HostPort): Promise<Exit | "refused">;
  close(): void;
}

/** Keep-alive agent of one session. Connections are never shared between sessions. */
export class DialingAgent extends http.Agent {
  readonly #dial: (target: HostPort) => Promise<Socket>;

  constructor(dial: (target: HostPort) => Promise<Socket>) {
    super({ keepAlive: true });
    this.#dial = dial;
  }

  override createConnection(
    { host, port }: http.ClientRequestArgs,
    callback?: (error: Error | null, socket: Duplex) => void,
  ): undefined {
    this.#dial({ host: host ?? "", port: Number(port) }).then(
      (socket) => callback?.(null, socket),
      // Node's type requires a socket with an error, but its agent ignores the socket.
      (error: Error) => (callback as ((error: Error) => void) | undefined)?.(error),
    );
  }
}
