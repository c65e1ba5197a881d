import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import {
  isInitializeRequest,
  isJSONRPCRequest,
  type JSONRPCMessage,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";

/** Ends of a bridge. */
export interface McpBridge {
  readonly url: URL;
  readonly key: string;
  readonly stdin: Readable;
  readonly stdout: Writable;
  /** Receives a line about a failure. */
  report(line: string): void;
}

/** JSON-RPC code of a failure within a server. */
const internalError = -32_603;

type RequestId = string | number;

/** Relays messages between standard streams and a server, until the input ends or the signal aborts. */
export async function bridgeMcp({ url, key, stdin, stdout, report }: McpBridge, signal: AbortSignal): Promise<void> {
  const client = new StdioServerTransport(stdin, stdout);
  const server = new StreamableHTTPClientTransport(url, {
    requestInit: { headers: { authorization: `Bearer ${key}` } },
  });
  const running = new Map<RequestId, AbortController>();
  const closed = new AbortController();
  let handshake: RequestId | undefined;

  server.onmessage = (message) => {
    if ("id" in message && message.id !== undefined) running.delete(message.id);
    // Later requests of this protocol revision send the version in a header.
    const version = "result" in message && message.id === handshake && message.result.protocolVersion;
    if (typeof version === "string") server.setProtocolVersion(version);
    client.send(message).catch(() => closed.abort());
  };
  server.onerror = ({ message }) => report(message);
  client.onclose = () => closed.abort();
  client.onmessage = (message) => {
    if (isInitializeRequest(message) && isJSONRPCRequest(message)) handshake = message.id;
    void relay(message);
  };

  async function relay(message: JSONRPCMessage): Promise<void> {
    if (!isJSONRPCRequest(message)) {
      const cancelled = cancelledRequest(message);
      // The server has no state: the end of the request cancels it.
      if (cancelled !== undefined) return running.get(cancelled)?.abort();
      return await server.send(message).catch(() => undefined);
    }
    const controller = new AbortController();
    running.set(message.id, controller);
    try {
      await server.send(message, { requestSignal: controller.signal });
    } catch (error) {
      running.delete(message.id);
      const text = error instanceof Error ? error.message : String(error);
      const failure = { code: internalError, message: `${url.href} did not respond: ${text}` };
      if (!controller.signal.aborted) await client.send({ jsonrpc: "2.0", id: message.id, error: failure });
    }
  }

  await server.start();
  await client.start();
  const end = AbortSignal.any([signal, closed.signal]);
  if (!end.aborted) await once(end, "abort");
  await server.close();
  await client.close();
}

/** Returns the id that a cancellation names. */
function cancelledRequest(message: JSONRPCMessage): RequestId | undefined {
  if (!("method" in message) || message.method !== "notifications/cancelled") return undefined;
  const id = message.params?.requestId;
  return typeof id === "string" || typeof id === "number" ? id : undefined;
}
