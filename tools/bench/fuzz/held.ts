import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { envelope, type Fields, frame, hpack, http1 } from "../../../test/hostile-bytes/bytes.ts";

/** An unfinished request, or requests whose responses the client does not read. */
export interface Held {
  readonly name: string;
  readonly port: "PORT" | "GRPC_PORT";
  readonly bytes: Buffer;
}

/** Part of a body that fits the initial window of an HTTP/2 stream (RFC 9113, section 6.9.2). */
const part = Buffer.alloc(48 * 1_024, 0x20);
const promised = 1_000_000;

/** Returns the bytes of an HTTP/2 preface, settings and one request. */
function http2(fields: Fields, body: Buffer, windowless: boolean): Buffer {
  const noWindow = [0, 4, 0, 0, 0, 0];
  const [endStream, endHeaders] = [1, 4];
  const bodies = Array.from({ length: Math.ceil(body.length / 16_384) }, (_, index) =>
    frame(0, 0, 1, body.subarray(index * 16_384, (index + 1) * 16_384)),
  );
  return Buffer.concat([
    Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    frame(4, 0, 0, windowless ? noWindow : []),
    frame(1, endHeaders | (body.length > 0 ? 0 : endStream), 1, hpack(fields)),
    ...bodies,
  ]);
}

const get = (path: string): Fields => [
  [":method", "GET"],
  [":scheme", "http"],
  [":authority", "localhost"],
  [":path", path],
];

const call = (path: string, type: string): Fields => [
  [":method", "POST"],
  [":scheme", "http"],
  [":authority", "localhost"],
  [":path", path],
  ["content-type", type],
  ["te", "trailers"],
];

const rpcs = ["AuthService/LogIn", "SessionService/Create", "SessionService/Drive", "StatusService/Watch"];
const documents = ["/docs", "/v1/openapi.json", "/v1/status/stream", "/v1/archetypes"];
const unfinishedCall = envelope(0, part, promised);

export const held: readonly Held[] = [
  { name: "a connection that says nothing", port: "PORT", bytes: Buffer.alloc(0) },
  { name: "half a head", port: "PORT", bytes: Buffer.from(`GET / HTTP/1.1\r\nx: ${"a".repeat(15_000)}`) },
  ...["/v1/auth/login", "/v1/sessions", "/v1/recipes", "/processors/stripe", "/oauth/token"].map((path): Held => {
    const headers = ["Host: localhost", "Content-Type: application/json", `Content-Length: ${promised}`];
    return {
      name: `a body of ${path} without an end`,
      port: "PORT",
      bytes: http1(`POST ${path} HTTP/1.1`, headers, part.subarray(0, 15 * 1_024)),
    };
  }),
  ...rpcs.flatMap((rpc) =>
    (["application/grpc", "application/connect+json", "application/json"] as const).map(
      (type): Held => ({
        name: `a message of ${rpc} without an end, ${type}`,
        port: "PORT",
        bytes: http2(call(`/pilothouse.v1.${rpc}`, type), type === "application/json" ? part : unfinishedCall, false),
      }),
    ),
  ),
  ...[...rpcs.map((rpc) => `pilothouse.v1.${rpc}`), "grpc.reflection.v1.ServerReflection/ServerReflectionInfo"].map(
    (path): Held => ({
      name: `a message of ${path} without an end`,
      port: "GRPC_PORT",
      bytes: http2(call(`/${path}`, "application/grpc"), unfinishedCall, false),
    }),
  ),
  ...documents.flatMap((path): Held[] => [
    {
      name: `unread responses of ${path}`,
      port: "PORT",
      bytes: Buffer.concat(Array.from({ length: 8 }, () => http1(`GET ${path} HTTP/1.1`, ["Host: localhost"]))),
    },
    { name: `a response of ${path} without a window`, port: "PORT", bytes: http2(get(path), Buffer.alloc(0), true) },
  ]),
];

let opened = 0;

/** Open connections. */
export interface Holding {
  close(): void;
}

/** Opens connections from separate loopback addresses. Resolves when all bytes are sent. */
export async function hold({ bytes }: Held, port: number, count: number): Promise<Holding> {
  const sockets: Socket[] = [];
  for (let left = count; left > 0; left -= 1) {
    opened += 1;
    const localAddress = `127.${9 + (opened >> 14)}.${(opened >> 7) & 127}.${1 + (opened & 127)}`;
    const socket = connect({ port, host: "127.0.0.1", localAddress }).on("error", () => undefined);
    sockets.push(socket.pause());
    await once(socket, "connect");
    await new Promise((sent) => socket.write(bytes, sent));
  }
  return {
    close: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}
