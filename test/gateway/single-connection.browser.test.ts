import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { FixtureSite } from "../support/fixture-site.ts";
import { borrowService, type WarmService } from "../support/warm-service.ts";

let service: WarmService;
let site: FixtureSite;
let gatewayPid: number;
beforeAll(async () => {
  ({ service, site } = await borrowService());
  gatewayPid = service.pidOf("gateway");
});
afterAll(async () => {
  await service?.stop();
  await site?.stop();
});

/** Opens a connection, writes `bytes` in one segment, and closes the connection after `ms`. */
async function send(to: string, bytes: Buffer | string, ms: number): Promise<string> {
  const { hostname, port } = new URL(`tcp://${to}`);
  return exchange(connect(Number(port), hostname), bytes, ms);
}

async function exchange(socket: Socket, bytes: Buffer | string, ms: number): Promise<string> {
  const received: Buffer[] = [];
  socket.on("error", () => undefined).on("data", (part) => received.push(part));
  await once(socket, "connect");
  socket.write(bytes);
  // Leaves time for a possible fault, which has no event to wait for.
  await Promise.race([once(socket, "close"), sleep(ms)]);
  socket.destroy();
  return Buffer.concat(received).toString("latin1");
}

const publicAddress = (): string => new URL(service.url).host;

async function metric(name: RegExp): Promise<number> {
  const response = await fetch(`${service.internalUrl}/metrics`, { signal: AbortSignal.timeout(1_000) });
  return Number(name.exec(await response.text())?.[1]);
}

/** Expects that the same process responds within a second, without uncaught errors. */
async function expectUnharmed(): Promise<void> {
  // Documents do not consume an account's tokens.
  const answer = await fetch(`${service.url}/favicon.ico`, { method: "HEAD", signal: AbortSignal.timeout(1_000) });
  expect(answer.status).toBe(200);
  const health = await fetch(`${service.internalUrl}/readyz`, { signal: AbortSignal.timeout(1_000) });
  expect(health.status).toBe(200);
  expect(service.pidOf("gateway")).toBe(gatewayPid);
  expect(await metric(/^pilothouse_uncaught_errors_total\{role="gateway"\} (\d+)/m)).toBe(0);
}

function frame(type: number, flags: number, stream: number, payload: Buffer | string = ""): Buffer {
  const body = Buffer.from(payload);
  const head = Buffer.alloc(9);
  head.writeUIntBE(body.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, body]);
}

/** Encodes a header block with literal fields (RFC 7541, section 6.2.2). */
function headerBlock(fields: Readonly<Record<string, string>>): Buffer {
  const text = (value: string): Buffer => Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]);
  return Buffer.concat(Object.entries(fields).flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}

const http2Preface = Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(4, 0, 0)]);
const cancel = Buffer.from([0, 0, 0, 8]);

test.for(["P", "PR", "PRI", "PO", "PUT", "PATC"])("serves other clients after a first segment of %s", async (text) => {
  for (const address of [publicAddress(), service.grpcAddress]) {
    await send(address, text, 100);
    await expectUnharmed();
  }
});

test("answers a request sent byte by byte", async () => {
  const { hostname, port } = new URL(service.url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  await once(socket, "connect");
  for (const byte of "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n") {
    socket.write(byte);
    await sleep(1);
  }
  const parts: Buffer[] = [];
  for await (const part of socket) parts.push(part);
  expect(Buffer.concat(parts).toString()).toMatch(/^HTTP\/1\.1 401 /);
});

test("answers an upgrade pipelined after a request in order", async () => {
  const request = "GET /v1/sessions HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const upgrade =
    "GET /v1/sessions/x/drive HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n" +
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
  const answers = await send(publicAddress(), request + upgrade, 1_000);
  expect([...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(["401", "404"]);
  await expectUnharmed();
});

const badAuthorities = ["localhost:99999", "localhost:1:2", "local host", "[::1", "localhost/x", "a@localhost", "%"];

test.for(badAuthorities)("refuses the authority %s with a problem", async (host) => {
  const path = "/pilothouse.v1.SessionService/List";
  const overHttp1 = `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 2\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{}`;
  expect(await send(publicAddress(), overHttp1, 1_000)).toMatch(/^HTTP\/1\.1 400 /);
  const fields = { ":method": "POST", ":scheme": "http", ":path": path, ":authority": host };
  const request = headerBlock({ ...fields, "content-type": "application/json" });
  await send(publicAddress(), Buffer.concat([http2Preface, frame(1, 4, 1, request), frame(0, 1, 1, "{}")]), 50);
  await expectUnharmed();
});

/** Frames that end a stream or its connection in the same segment as the request. */
const endings = {
  "data after its end": (request: Buffer) => [frame(1, 5, 1, request), frame(0, 1, 1, "{}")],
  "a reset": (request: Buffer) => [frame(1, 4, 1, request), frame(3, 0, 1, cancel)],
  "a reset after its end": (request: Buffer) => [frame(1, 5, 1, request), frame(3, 0, 1, cancel)],
  "a window overflow": (request: Buffer) => [
    frame(1, 5, 1, request),
    frame(8, 0, 1, Buffer.from([127, 255, 255, 255])),
  ],
  "a GOAWAY": (request: Buffer) => [frame(1, 5, 1, request), frame(7, 0, 0, Buffer.from([0, 0, 0, 1, 0, 0, 0, 0]))],
  "a broken frame": (request: Buffer) => [frame(1, 5, 1, request), frame(6, 0, 0, "1")],
};

test.for(Object.entries(endings))("ignores a gRPC stream ended by %s", async ([, ending]) => {
  const sockets = ["fleet.sock", "worker.sock"].map((name) => join(service.dataDir, name));
  for (const contentType of ["text/plain", "application/grpc"]) {
    const fields = { ":method": "POST", ":scheme": "http", ":path": "/x", ":authority": "localhost", te: "trailers" };
    const request = headerBlock({ ...fields, "content-type": contentType });
    const bytes = Buffer.concat([http2Preface, ...ending(request)]);
    await send(service.grpcAddress, bytes, 50);
    for (const path of sockets) await exchange(connect(path), bytes, 50);
  }
  await expectUnharmed();
});

test.for([
  ["SessionService/Drive", "application/connect+json"],
  ["StatusService/Watch", "application/connect+json"],
  ["StatusService/Get", "application/grpc-web+proto"],
])("ends a call of %s as %s, pipelined after a stream, when its client disconnects", async ([method, type]) => {
  const key = `Authorization: Bearer ${service.key}\r\n`;
  const calls =
    `GET /v1/status/stream HTTP/1.1\r\nHost: localhost\r\n\r\nPOST /pilothouse.v1.${method} HTTP/1.1\r\n` +
    `Host: localhost\r\n${key}Content-Type: ${type}\r\nTransfer-Encoding: chunked\r\n\r\n`;
  for (let times = 0; times < 8; times += 1) await send(publicAddress(), calls, times);
  await expectUnharmed();
});

test("answers each invalid protobuf message over Connect with the same error", async () => {
  const request = { method: "POST", headers: { "content-type": "application/proto" }, body: Buffer.from([255]) };
  for (let times = 0; times < 2; times += 1) {
    const response = await fetch(`${service.url}/pilothouse.v1.StatusService/Get`, request);
    expect([response.status, await response.json()]).toMatchObject([400, { code: "invalid_argument" }]);
  }
});

test("releases the slots of status streams whose connection has ended", async () => {
  const openStreams = /^pilothouse_open_streams\{method="StatusService.Watch",.*\} (\d+)/m;
  const fields = { ":method": "GET", ":scheme": "http", ":path": "/v1/status/stream", ":authority": "localhost" };
  const streams = Array.from({ length: 20 }, (_, index) => 2 * index + 1);
  const resets = streams.flatMap((id) => [frame(1, 5, id, headerBlock(fields)), frame(3, 0, id, cancel)]);
  await send(publicAddress(), Buffer.concat([http2Preface, ...resets]), 300);
  const pipelined = "GET /v1/status/stream HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(10);
  await send(publicAddress(), pipelined, 300);
  // After CONNECT, Node does not notify responses queued after another one that the connection has ended.
  await send(publicAddress(), `${pipelined}CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n`, 300);
  await expect.poll(() => metric(openStreams), { timeout: 5_000 }).toBe(0);
  await expectUnharmed();
});
