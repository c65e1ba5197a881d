import type { WebSocket } from "ws";
import type { ServedMethod } from "../../src/kernel/registry.ts";
import { compileWriter } from "../../src/platform/rest-json/writer.ts";
import type { GatewayCall } from "../gateway-call.ts";
import { compileRequestReader, type RequestReader } from "../rest/request-reader.ts";
import { parseTemplate } from "../rest/template.ts";
import type { TransportParts } from "../transport-parts.ts";
import { closeClientFault, closeFailed, send } from "./stream.ts";

/**
 * Returns the path at which a WebSocket follows a server stream, which is the path of its Server-Sent Events. Returns
 * "" for other methods. A browser opens at most six HTTP/1.1 connections to a host, and many more WebSockets.
 */
export function followedPath({ rules, route, kind }: ServedMethod): string {
  const isFollowed = kind === "server_streaming" && rules.follows && !rules.public && route?.verb === "GET";
  return isFollowed ? route.template : "";
}

/** Compiles the reader of a followed stream's request, which consists of path and query. */
export function compileFollowed({ method, route }: ServedMethod): RequestReader {
  if (!route) throw new Error(`${method} has no route`);
  return compileRequestReader(method.input, route, parseTemplate(route.template).variables);
}

/**
 * Sends the messages of a server stream over an accepted WebSocket, one JSON message per frame. Returns a reader of the
 * number of waiting bytes, which is always 0.
 */
export function serveFollowed(
  client: WebSocket,
  call: GatewayCall,
  request: ReturnType<RequestReader>,
  { dispatcher, problems }: TransportParts,
  closeCode: () => number,
): () => number {
  const write = compileWriter(call.served.method.output);
  client.on("message", () => client.close(closeClientFault, "the stream accepts no messages"));
  client.on("close", () => call.cancel());
  // The WebSocket closes itself after an error; without a listener the error would end the process.
  client.on("error", () => undefined);

  async function run(): Promise<void> {
    try {
      for await (const message of dispatcher.serverStream(call, request))
        await send(client, JSON.stringify(write(message)));
      client.close(closeCode());
    } catch (thrown) {
      await closeFailed(client, call, problems, thrown);
    }
  }
  void run();
  return () => 0;
}
