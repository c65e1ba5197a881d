import http from "node:http";
import https from "node:https";
import { createSecureContext } from "node:tls";

/** A connection that nobody uses is kept for this long: most servers keep theirs for 5 s. */
const keepMs = 4_000;

/** How many connections are kept that nobody uses: of one host, and in all. One by TLS takes some 50 KiB. */
const idle = { perHost: 8, inAll: 128 };

/** Without the hybrid with ML-KEM: its first message needs a buffer more, which each connection keeps (16 KiB of 60). */
const ecdhCurve = "X25519:P-256:P-384";

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
      secure ??= bounded(new https.Agent({ ...options, secureContext: createSecureContext({ ecdhCurve, ca }) }));
      return secure;
    },
    close() {
      for (const agent of agents) agent.destroy();
    },
  };
}
