import http from "node:http";
import https from "node:https";
import { Socket } from "node:net";
import { createSecureContext } from "node:tls";
import { unlessLate } from "../deadline.ts";
import { createTurns } from "../turns.ts";

/** A connection that nobody uses is kept for this long: most servers keep theirs for 5 s. */
const keepMs = 4_000;

/** How many connections are kept that nobody uses: of one host, and in all. One by TLS takes some 50 KiB. */
const idle = { perHost: 8, inAll: 128 };

/** Without the hybrid with ML-KEM: its first message needs a buffer more, which each connection keeps (16 KiB of 60). */
const ecdhCurve = "X25519:P-256:P-384";

/**
 * How many connections agree on TLS at once: each takes some 20 KiB more until it has. After so many milliseconds one loses
 * its place, so that other sides that are silent hold up nobody for long.
 */
const handshakes = { atOnce: 64, patience: 300 };

/** A request, and the addresses that it may be sent to. */
export interface PinnedRequest extends https.RequestOptions {
  readonly addresses: readonly string[];
}

/** Connections that are used again, for each protocol of a URL. */
export interface KeptConnections {
  of(protocol: string): http.Agent;
  close(): void;
}

/**
 * Makes agents that keep connections, of which those that nobody uses are bounded in all. One is used again for the same
 * addresses alone: a name that leads elsewhere by now is followed there.
 */
export function keepConnections(ca: string | undefined): KeptConnections {
  const options = { keepAlive: true, timeout: keepMs, maxFreeSockets: idle.perHost };
  const agents: http.Agent[] = [];
  const countIdle = () => agents.flatMap(({ freeSockets }) => Object.values(freeSockets).flat()).length;
  function bounded<Agent extends http.Agent>(agent: Agent): Agent {
    const keep = agent.keepSocketAlive.bind(agent);
    const nameOf = agent.getName.bind(agent);
    agent.getName = (request?: Partial<PinnedRequest>) => [nameOf(request), ...(request?.addresses ?? [])].join(" ");
    agent.keepSocketAlive = (socket) => countIdle() < idle.inAll && keep(socket);
    agents.push(agent);
    return agent;
  }
  const plain = bounded(new http.Agent(options));
  let secure: https.Agent | undefined;
  return {
    of(protocol) {
      if (protocol !== "https:") return plain;
      // One context for all: each connection would make its own, with all authorities in it.
      secure ??= bounded(
        takingTurns(new https.Agent({ ...options, secureContext: createSecureContext({ ecdhCurve, ca }) })),
      );
      return secure;
    },
    close() {
      for (const agent of agents) agent.destroy();
    },
  };
}

/** Has an agent's connections agree on TLS a few at a time, in the order in which they were asked for. */
function takingTurns(agent: https.Agent): https.Agent {
  const connect = agent.createConnection.bind(agent);
  const inTurn = createTurns(handshakes.atOnce);
  agent.createConnection = (options, callback) => {
    const open = async (): Promise<void> => {
      const socket = connect(options);
      if (!socket) throw new Error("the agent gave no connection");
      const settled = new Promise((resolve) => socket.once("secureConnect", resolve).once("close", resolve));
      callback?.(null, socket);
      await unlessLate(settled, handshakes.patience, () => undefined);
    };
    // Its type wants a socket beside the error.
    inTurn(open).catch((error: Error) => callback?.(error, new Socket()));
    return undefined;
  };
  return agent;
}
