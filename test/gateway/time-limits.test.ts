import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect as connectHttp2, constants } from "node:http2";
import { connect as connectTcp, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createConnectionCap } from "../../gateway/connection-cap.ts";
import { blockListOf } from "../../gateway/peer.ts";
import { lingerMs } from "../../gateway/slow-bodies.ts";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { makeSelfSigned } from "../support/self-signed.ts";
import { startTransportGateway, type TransportGateway } from "./transport-gateway.ts";

// `idle` far exceeds the linger time after a response, so that tests can distinguish the two.
const limits = { silence: 500, request: 1_500, open: 1_000, idle: 5_000, keepAlive: 75_000 };

let gateway: TransportGateway;
let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "pilothouse-tls-"));
  const { cert, key } = makeSelfSigned();
  const files = { TLS_CERT: join(directory, "cert.pem"), TLS_KEY: join(directory, "key.pem") };
  await writeFile(files.TLS_CERT, cert);
  await writeFile(files.TLS_KEY, key);
  gateway = await startTransportGateway(files, limits);
});
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

async function openTls(protocol: string, url = gateway.url): Promise<TLSSocket> {
  const { port } = new URL(url);
  const socket = connectTls({
    port: Number(port),
    host: "127.0.0.1",
    rejectUnauthorized: false,
    ALPNProtocols: [protocol],
  });
  await once(socket, "secureConnect");
  return socket;
}

async function readAll(socket: TLSSocket): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of socket) parts.push(part);
  return Buffer.concat(parts).toString();
}

// Most of these tests wait for a limit, so they can run concurrently.
describe.concurrent("under TLS", () => {
  test("invalid HTTP is answered with a problem", async () => {
    const socket = await openTls("http/1.1");
    socket.write("GARBAGE\r\n\r\n");
    const answer = await readAll(socket);
    expect(answer).toMatch(/^HTTP\/1\.1 400 [^\0]*content-type: application\/problem\+json/);
    expect(answer).toMatch(/x-request-id: req_/);
  });

  test("a body that does not arrive in time is refused with a problem", async () => {
    const socket = await openTls("http/1.1");
    socket.write(
      `POST /v1/things/t/break HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${gateway.key}\r\n` +
        "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
    );
    expect(await readAll(socket)).toMatch(/^HTTP\/1\.1 400 [^\0]*is incomplete after the time limit/);
  });

  test("an incomplete body over HTTP/2 ends its stream, and an idle connection is closed", async () => {
    const session = connectHttp2(gateway.url, { rejectUnauthorized: false });
    const ended = once(session, "close");
    const headers = { authorization: `Bearer ${gateway.key}`, "content-type": "application/json" };
    const stream = session.request({ ...headers, ":method": "POST", ":path": "/v1/things/t/break" });
    stream.write("{");
    stream.on("error", () => undefined);
    await once(stream, "close");
    expect(stream.rstCode).not.toBe(0);
    await ended;
  });

  test("a request that ends after its response leaves the connection open", async () => {
    const session = connectHttp2(gateway.url, { rejectUnauthorized: false });
    const ask = async (body: string): Promise<unknown> => {
      const stream = session.request({
        ":method": "POST",
        ":path": "/v1/things/t/break",
        "content-type": "application/json",
      });
      stream.write(body);
      const [headers] = await once(stream, "response");
      const closed = once(stream.resume(), "close");
      stream.end();
      await closed;
      return headers[":status"];
    };
    try {
      expect(await ask("{")).toBe(401);
      // If the client continued to send, the connection would be closed by then.
      const goaway = once(session, "goaway", { signal: AbortSignal.timeout(lingerMs + 500) });
      await expect(goaway).rejects.toThrow("aborted");
      expect(await ask("")).toBe(401);
    } finally {
      session.destroy();
    }
  });

  test.each([
    { door: "REST", path: "/v1/things/t/break", type: "application/json" },
    { door: "Connect", path: "/pilothouse.test.DoorService/Break", type: "application/json" },
    { door: "a Connect stream", path: "/pilothouse.test.DoorService/Talk", type: "application/connect+json" },
    { door: "gRPC", path: "/pilothouse.test.DoorService/Talk", type: "application/grpc" },
    { door: "GRPC_PORT", path: "/pilothouse.test.DoorService/Talk", type: "application/grpc" },
    {
      door: "GRPC_PORT, reflection",
      path: "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
      type: "application/grpc",
    },
  ])(
    "a request over $door is not read after its response, and its connection is closed",
    async ({ door, path, type }) => {
      const url = door.startsWith("GRPC_PORT") ? `https://${gateway.grpcAddress}` : gateway.url;
      const socket = await openTls("h2", url);
      const session = connectHttp2(url, { createConnection: () => socket });
      const ended = once(session, "close");
      const stream = session.request({ ":method": "POST", ":path": path, "content-type": type, te: "trailers" });
      stream.resume().end(Buffer.alloc(4 * 2 ** 20));
      await once(stream, "response");
      await ended;
      expect(stream.rstCode).toBe(constants.NGHTTP2_NO_ERROR);
      // The windows of the stream and the connection, and what the client sends before it receives the reset.
      expect(socket.bytesWritten).toBeLessThan(2 ** 18);
    },
  );

  test("a request that stays incomplete after its response is ended, and its connection closed", async () => {
    const session = connectHttp2(gateway.url, { rejectUnauthorized: false });
    const ended = once(session, "close");
    const stream = session.request({ ":method": "POST", ":path": "/v1/things/t/break" }, { endStream: false });
    stream.resume();
    const [headers] = await once(stream, "response");
    expect(headers[":status"]).toBe(401);
    await ended;
    expect(stream.rstCode).toBe(constants.NGHTTP2_NO_ERROR);
  });

  test("a silent connection is closed", async () => {
    const socket = await openTls("h2");
    socket.resume();
    await once(socket, "close");
  });
});

test("a client address has a limited number of connections, except a trusted proxy", async () => {
  const takes = createConnectionCap(blockListOf(["127.0.5.2"]), 3);
  let open = 0;
  const server = createServer((socket) => {
    if (!takes(socket)) return;
    open += 1;
    socket
      .on("error", () => undefined)
      .on("close", () => {
        open -= 1;
      });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;
  const openFive = async (localAddress: string): Promise<(() => void)[]> =>
    Promise.all(
      Array.from({ length: 5 }, async () => {
        const socket = connectTcp({ port, host: "127.0.0.1", localAddress }).on("error", () => undefined);
        await once(socket, "connect");
        return () => socket.destroy();
      }),
    );
  const becomes = (count: number): Promise<boolean> => waitUntil(() => open === count, { timeout: 20_000, every: 10 });
  try {
    const stranger = await openFive("127.0.5.1");
    expect(await becomes(3)).toBe(true);
    const proxied = await openFive("127.0.5.2");
    expect(await becomes(8)).toBe(true);
    for (const close of stranger) close();
    expect(await becomes(5)).toBe(true);
    const again = await openFive("127.0.5.1");
    expect(await becomes(8)).toBe(true);
    for (const close of [...proxied, ...again]) close();
  } finally {
    server.close();
  }
});
