import http from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { HostPort } from "../../src/platform/outgoing/address-rules.ts";
import { pinnedLookup, resolveTarget } from "../../src/platform/outgoing/target-resolution.ts";
import type { EgressRoute, Exit } from "./egress-route.ts";
import type { MediaServer } from "./media-server.ts";
import type { EgressGuard } from "./resolver.ts";
import type { SocketTally } from "./socket-tally.ts";
import { connectTarget } from "./tunnel.ts";

/** Direct egress. Connects only to the addresses that were checked. */
export class DirectRoute implements EgressRoute {
  readonly state = "direct";
  readonly #guard: EgressGuard;
  readonly #isAllowed: (target: HostPort) => boolean;
  readonly #tally: SocketTally;
  readonly #agent: http.Agent;
  readonly #mediaServer: MediaServer | undefined;

  constructor(
    guard: EgressGuard,
    isAllowed: (target: HostPort) => boolean,
    tally: SocketTally,
    mediaServer?: MediaServer,
  ) {
    this.#guard = guard;
    this.#mediaServer = mediaServer;
    this.#isAllowed = isAllowed;
    this.#tally = tally;
    this.#agent = new CountingAgent((socket) => tally.add(socket));
  }

  async open(target: HostPort): Promise<Exit | "refused"> {
    const resolution = await resolveTarget(target, this.#guard.rules, this.#isAllowed, this.#guard.resolve);
    if (resolution.kind === "refused" || this.#mediaServer?.isAt(target, resolution.addresses)) return "refused";
    const lookup = pinnedLookup(resolution.addresses);
    return {
      agent: this.#agent,
      lookup,
      connect: async (signal) => {
        const socket = await connectTarget(target, lookup, signal);
        this.#tally.add(socket);
        return socket;
      },
    };
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Keep-alive agent of one session that reports each new socket for byte counting. */
class CountingAgent extends http.Agent {
  readonly #onSocket: (socket: Socket) => void;

  constructor(onSocket: (socket: Socket) => void) {
    super({ keepAlive: true });
    this.#onSocket = onSocket;
  }

  override createConnection(...parameters: Parameters<http.Agent["createConnection"]>): Duplex | null | undefined {
    const socket = super.createConnection(...parameters);
    if (socket instanceof Socket) this.#onSocket(socket);
    return socket;
  }
}
