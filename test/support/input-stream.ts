import { once } from "node:events";
import { createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { WebSocket } from "ws";
import { AgentInputService } from "../../src/gen/pilothouse/v1/agent_input_pb.ts";

/** Transports of input streams. */
export const inputTransports = ["WebSocket", "Connect", "gRPC"] as const;

export type InputTransport = (typeof inputTransports)[number];

/** Event in REST JSON: its kind and its other members at one level. */
export type InputJson = Readonly<Record<string, unknown>> & { readonly kind: string };

export interface Acknowledged {
  readonly sequence: number;
  readonly accepted: number;
  readonly dropped: number;
}

export interface InputStream extends Disposable {
  /** Sends events without waiting for their acknowledgement. */
  send(events: readonly InputJson[]): void;
  readonly acknowledged: Acknowledged;
  /** Number of messages sent. */
  readonly sent: number;
}

export interface InputTarget {
  readonly url: string;
  readonly grpcAddress: string;
  readonly key: string;
  /** Id of the agent session. */
  readonly agentId: string;
  readonly clientId: string;
}

const none: Acknowledged = { sequence: 0, accepted: 0, dropped: 0 };

export async function openInput(transportName: InputTransport, target: InputTarget): Promise<InputStream> {
  return transportName === "WebSocket" ? openSocket(target) : openRpc(transportOf(transportName, target), target);
}

async function openSocket({ url, key, agentId, clientId }: InputTarget): Promise<InputStream> {
  const socket = new WebSocket(`${url.replace("http", "ws")}/v1/agent-sessions/${agentId}/stream`, ["pilothouse.v1"], {
    headers: { authorization: `Bearer ${key}` },
  });
  await once(socket, "open");
  let acknowledged = none;
  let sent = 0;
  socket.on("message", (data) => {
    const { acknowledgement, error } = JSON.parse(String(data));
    if (error) throw new Error(JSON.stringify(error));
    acknowledged = acknowledgement ?? acknowledged;
  });
  return {
    send(events) {
      sent += 1;
      socket.send(JSON.stringify({ client_id: clientId, sequence: sent, events }));
    },
    get acknowledged() {
      return acknowledged;
    },
    get sent() {
      return sent;
    },
    [Symbol.dispose]: () => socket.terminate(),
  };
}

function transportOf(transportName: "Connect" | "gRPC", { url, grpcAddress }: InputTarget): Transport {
  return transportName === "Connect"
    ? createConnectTransport({ baseUrl: url, httpVersion: "2" })
    : createGrpcTransport({ baseUrl: `http://${grpcAddress}` });
}

function openRpc(transport: Transport, { key, agentId, clientId }: InputTarget): InputStream {
  const over = new AbortController();
  const waiting: (readonly InputJson[])[] = [];
  let wake = Promise.withResolvers<void>();
  let acknowledged = none;
  let sent = 0;
  async function* requests() {
    for (let sequence = 1; ; ) {
      for (const events of waiting.splice(0)) {
        const messages = events.map(({ kind, ...value }) => ({ event: { case: caseOf(kind), value } }));
        // Cast: JSON written by the tests becomes messages.
        yield { agentSessionId: agentId, clientId, sequence, events: messages as never };
        sequence += 1;
      }
      await wake.promise;
      wake = Promise.withResolvers();
    }
  }
  const options = { headers: { authorization: `Bearer ${key}` }, signal: over.signal };
  const answers = createClient(AgentInputService, transport).streamInput(requests(), options);
  const reading = (async () => {
    for await (const { acknowledgement, error } of answers) {
      if (error) throw new Error(error.detail ?? error.title);
      acknowledged = acknowledgement ?? acknowledged;
    }
  })();
  reading.catch((thrown: unknown) => {
    if (!over.signal.aborted) throw thrown;
  });
  return {
    send(events) {
      sent += 1;
      waiting.push(events);
      wake.resolve();
    },
    get acknowledged() {
      return acknowledged;
    },
    get sent() {
      return sent;
    },
    [Symbol.dispose]: () => over.abort(),
  };
}

/** Converts `pointer_move` to `pointerMove`. */
function caseOf(kind: string): string {
  return kind.replaceAll(/_(.)/g, (_all, letter: string) => letter.toUpperCase());
}
