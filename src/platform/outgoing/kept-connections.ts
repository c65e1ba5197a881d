import http from "node:http";
import https from "node:https";
import { Socket } from "node:net";
import { createSecureContext } from "node:tls";
import { unlessLate } from "../deadline.ts";
import { createLimiter } from "../limiter.ts";

/** Milliseconds to keep an idle connection. Most servers close idle connections after 5 s. */
const keepMs = 4_000;

/** Maximum numbers of idle connections. A TLS connection takes about 50 KiB. */
const idle = { perHost: 8, inAll: 128 };

/** Key exchange without ML-KEM, whose larger first message would keep another 16 KiB per connection. */
const ecdhCurve = "X25519:P-256:P-384";

/**
 * Limits concurrent TLS handshakes, each of which takes about 20 KiB. A handshake slower than `patience` milliseconds
 * stops counting, so that silent servers do not block others.
 */
const handshakes = { atOnce: 64, patience: 300 };

/** A request with its permitted addresses. */
export interface PinnedRequest extends https.RequestOptions {
  readonly addresses: readonly string[];
}

/** Agents with reused connections by URL protocol. */
export interface KeptConnections {
  of(protocol: string): http.Agent;
  close(): void;
}

/** Creates agents with a bound on all idle connections. A connection is reused only for the same resolved addresses. */
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
      // One context for all connections, because each context contains all certificate authorities.
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

/** Limits the concurrent TLS handshakes of an agent. */
function takingTurns(agent: https.Agent): https.Agent {
  const connect = agent.createConnection.bind(agent);
  const inTurn = createLimiter(handshakes.atOnce);
  agent.createConnection = (options, callback) => {
    const open = async (): Promise<void> => {
      const socket = connect(options);
      if (!socket) throw new Error("expected a connection from the agent, got none");
      const settled = new Promise((resolve) => socket.once("secureConnect", resolve).once("close", resolve));
      callback?.(null, socket);
      await unlessLate(settled, handshakes.patience, () => undefined);
    };
    // The callback's type requires a socket with the error.
    inTurn(open).catch((error: Error) => callback?.(error, new Socket()));
    return undefined;
  };
  return agent;
}
