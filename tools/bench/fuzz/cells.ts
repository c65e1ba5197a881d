import { gzipSync } from "node:zlib";
import { longestBody, longestFrame, longestMessage } from "../../../gateway/message-size.ts";
import type { ServedMethod } from "../../../src/kernel/registry.ts";
import { builtServices } from "../../described-services.ts";
import { binaryFieldShapes, binaryShapes, heads, jsonFieldShapes, jsonShapes, queries, type Shape } from "./shapes.ts";
import { atOnce, connectCall, grpcCall, type Sent, type TransportClients } from "./transport-clients.ts";

/** A kind of message for one transport. */
export interface Cell {
  readonly who: "without a key" | "with a key";
  readonly transport: string;
  /** Method, or path of a document. */
  readonly target: string;
  readonly shape: string;
  /** Sends the message repeatedly, and returns the last status. */
  run(times: number): Promise<string>;
}

/** Address and credentials of a service. */
export interface Target {
  readonly clients: TransportClients;
  readonly grpcUrl: string;
  /** Key of an account without rate limits; undefined for a client without a key. */
  readonly key: string | undefined;
  /** A session of that account. */
  readonly session: string;
}

/** Methods that launch a browser, whose cost would hide the cost of the message. */
const launching: ReadonlySet<string> = new Set(["SessionService.Create", "AgentSessionService.Create"]);

const documents = ["/", "/docs", "/docs/webhooks.md", "/v1/openapi.json", "/errors", "/live", "/status", "/nothing"];

const whoOf = (key: string | undefined): Cell["who"] => (key === undefined ? "without a key" : "with a key");

/** Returns all kinds of messages: without a key to every method, with a key to methods that need one. */
export function cellsOf(target: Target): Cell[] {
  const methods = builtServices.flatMap(({ methods }) => methods);
  const isAnonymous = target.key === undefined;
  return [
    ...(isAnonymous ? documents.flatMap((path) => headCells(target, path)) : []),
    ...methods
      .filter(({ rules, name }) => isAnonymous || !(rules.public || launching.has(name)))
      .flatMap((served, index) =>
        methodCells(target, served, index === 0 || served.kind !== "unary" || served.rules.public),
      ),
  ];
}

function headCells({ clients, key }: Target, path: string): Cell[] {
  return heads.flatMap((head) =>
    (["http1", "http2"] as const).map((transport) => ({
      who: whoOf(key),
      transport,
      target: path,
      shape: head.name,
      run: repeat(() =>
        clients[transport]({ verb: "GET", path: head.path(path), headers: { ...bearer(key), ...head.headers } }),
      ),
    })),
  );
}

function queryCells({ clients, key }: Target, target: string, path: string): Cell[] {
  return queries.map((head) => ({
    who: whoOf(key),
    transport: "REST",
    target,
    shape: head.name,
    run: repeat(() => clients.http1({ verb: "GET", path: head.path(path), headers: bearer(key), endless: true })),
  }));
}

const bearer = (key: string | undefined): Record<string, string> =>
  key === undefined ? {} : { authorization: `Bearer ${key}` };

/** Sends requests with limited concurrency. */
const repeat =
  (send: () => Promise<string>) =>
  async (times: number): Promise<string> => {
    let [left, last] = [times, ""];
    const one = async (): Promise<void> => {
      for (left -= 1; left >= 0; left -= 1) last = await send();
    };
    await Promise.all(Array.from({ length: atOnce }, one));
    return last;
  };

/** Returns the messages of a method for all its transports. `hasShapes` adds those that match no method. */
function methodCells(target: Target, served: ServedMethod, hasShapes: boolean): Cell[] {
  const { clients, grpcUrl, key, session } = target;
  const { kind, method, route, rules, name } = served;
  const rpcPath = `/${method.parent.typeName}/${method.name}`;
  const streams = kind !== "unary";
  const cells: Cell[] = [];
  const add = (
    transport: string,
    shapes: readonly Shape[],
    sentOf: (bytes: Buffer) => Sent,
    send: (sent: Sent) => Promise<string>,
  ) => {
    for (const { name: shape, bytes } of shapes) {
      const run = (times: number): Promise<string> => {
        const sent = sentOf(bytes());
        return repeat(() => send({ ...sent, headers: { ...sent.headers, ...bearer(key) } }))(times);
      };
      cells.push({ who: whoOf(key), transport, target: name, shape, run });
    }
  };
  const vary = (path: string): string => path.replaceAll(/\{(\w+)\}/g, () => session);
  const omit = new Set([...(route?.template.matchAll(/\{(\w+)\}/g) ?? [])].map(([, variable = ""]) => variable));
  const isRead = key !== undefined || rules.public;

  if (route && (route.hasBody || route.rawBody)) {
    const limit = longestBody(served);
    const shapes = [
      ...(hasShapes ? jsonShapes(Math.min(limit, 2 ** 20)) : []),
      ...(isRead && route.hasBody ? jsonFieldShapes(method.input, omit, limit) : []),
    ];
    const headers = { "content-type": "application/json" };
    add(
      "REST",
      shapes,
      (body) => ({ verb: route.verb, path: vary(route.template), headers, body }),
      (sent) => clients.http1(sent),
    );
  } else if (route && isRead) {
    cells.push(...queryCells(target, name, vary(route.template)));
  }

  const limit = longestMessage(served);
  const json = [
    ...(hasShapes ? jsonShapes(limit) : []),
    ...(isRead ? jsonFieldShapes(method.input, new Set(), limit) : []),
  ];
  const binary = [...(hasShapes ? binaryShapes(limit) : []), ...(isRead ? binaryFieldShapes(method.input, limit) : [])];
  if (kind !== "bidi_streaming") {
    add(
      "Connect, JSON",
      hasShapes ? jsonShapes(limit) : [],
      (body) => connectCall(rpcPath, "json", body, streams),
      (sent) => clients.http1(sent),
    );
    add(
      "Connect, binary",
      binary,
      (body) => connectCall(rpcPath, "proto", body, streams),
      (sent) => clients.http1(sent),
    );
  }
  if (streams)
    add(
      "Connect, JSON stream",
      json,
      (body) => connectCall(rpcPath, "json", body, true),
      (sent) => clients.http2(sent),
    );
  add(
    "gRPC",
    hasShapes || streams ? binary : [],
    (body) => grpcCall(rpcPath, body, streams),
    (sent) => clients.http2(sent),
  );
  add(
    "gRPC on GRPC_PORT",
    binary,
    (body) => grpcCall(rpcPath, body, streams),
    (sent) => clients.http2(sent, grpcUrl),
  );
  if (hasShapes) {
    const packed = gzipSync(Buffer.alloc(2 ** 24));
    const unary = { ...connectCall(rpcPath, "json", packed, streams) };
    const bomb: Shape = { name: "16 MiB of zeros, compressed", bytes: () => packed };
    add(
      "Connect, JSON",
      [bomb],
      () => ({
        ...unary,
        headers: { ...unary.headers, "content-encoding": "gzip", "connect-content-encoding": "gzip" },
      }),
      (sent) => clients.http1(sent),
    );
    const compressed = (body: Buffer): Sent => {
      const call = grpcCall(rpcPath, body, streams);
      const first = Buffer.from(call.body ?? []);
      first[0] = 1;
      return { ...call, headers: { ...call.headers, "grpc-encoding": "gzip" }, body: first };
    };
    for (const [transport, url] of [
      ["gRPC", undefined],
      ["gRPC on GRPC_PORT", grpcUrl],
    ] as const)
      add(transport, [bomb], compressed, (sent) => clients.http2(sent, url));
  }

  if (rules.websocket !== "" && isRead) {
    const max = Math.min(longestFrame(served), 2 ** 20);
    const path = vary(rules.websocket);
    for (const { name: shape, bytes } of [...jsonShapes(max), ...jsonFieldShapes(method.input, omit, max)]) {
      cells.push({
        who: whoOf(key),
        transport: "WebSocket",
        target: name,
        shape,
        run: (times) => clients.webSocket(path, key, bytes(), times),
      });
    }
  }
  return cells;
}
