import { on, once } from "node:events";
import { create, toBinary } from "@bufbuild/protobuf";
import { Client, type ClientDuplexStream, credentials, Metadata } from "@grpc/grpc-js";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { CdpRequestSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { createTestClock } from "../support/test-clock.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";

const kibibyte = 1024;
const mebibyte = 1024 * kibibyte;

const clock = createTestClock({ isStill: true });
let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway({}, { clock });
  await gateway.running.worker({ slots: 30 });
});
afterAll(() => gateway?.[Symbol.asyncDispose]());

interface Drive extends AsyncDisposable {
  readonly socket: WebSocket;
  /** Sends a frame and returns the response. */
  ask(frame: object): Promise<{ error?: { type: string; detail: string; retry_after_seconds?: number } }>;
}

/** Opens a Drive WebSocket to a new session. */
async function openDrive(key: string): Promise<Drive> {
  const { body } = await gateway.as(key)("/v1/sessions", {});
  const url = `${gateway.url.replace("http", "ws")}/v1/sessions/${body.id}/drive`;
  const socket = new WebSocket(url, ["pilothouse.v1"], { headers: { authorization: `Bearer ${key}` } });
  socket.on("error", () => undefined);
  await once(socket, "open");
  const ask: Drive["ask"] = async (frame) => {
    const messages = on(socket, "message");
    socket.send(JSON.stringify(frame));
    for await (const [data] of messages) {
      const message = JSON.parse(String(data));
      // Session events arrive on the same stream.
      if (message.event === undefined) return message;
    }
  };
  return {
    socket,
    ask,
    async [Symbol.asyncDispose]() {
      socket.terminate();
    },
  };
}

/** Returns the tokens left in the `global` bucket after this request. */
async function tokensLeft(key: string): Promise<number> {
  return Number((await gateway.as(key)("/v1/api-keys")).headers.get("x-ratelimit-remaining"));
}

const typed = (id: string, text: string): object => ({ id, interact: { action: { kind: "type", text } } });

test("a stream can type a text of 100,000 characters", async () => {
  await using drive = await openDrive(await gateway.addAccount());
  expect(await drive.ask(typed("a", "\u{1}".repeat(100_000)))).toMatchObject({ id: "a", interact: {} });
});

test("a stream message consumes a token per 64 KiB", async () => {
  const key = await gateway.addAccount({ tier: "free" });
  await using drive = await openDrive(key);
  const before = await tokensLeft(key);
  await drive.ask(typed("a", "x".repeat(99_000)));
  await drive.ask({ id: "b", nope: "x".repeat(950 * kibibyte) });
  // 2 and 15 tokens, and one for the last request.
  expect(before - (await tokensLeft(key))).toBe(18);
});

test("a message is refused under its id if the bucket is empty, and delays its stream by Retry-After", async () => {
  const key = await gateway.addAccount({ tier: "free" });
  await using drive = await openDrive(key);
  // 15 of 60 tokens each, of which one is added each second.
  const large = (id: string): object => ({ id, nope: "x".repeat(950 * kibibyte) });
  const errors = [];
  for (const id of ["a", "b", "c"]) errors.push((await drive.ask(large(id))).error?.type.split("/").at(-1));
  expect(errors).toEqual(["validation-failed", "validation-failed", "validation-failed"]);
  const refused = await drive.ask(large("d"));
  expect(refused).toMatchObject({
    id: "d",
    error: { detail: expect.stringMatching(/rate limit "global" of .* exceeded/) },
  });
  const left = await tokensLeft(key);
  expect(left).toBeGreaterThan(0);
  const since = performance.now();
  expect(await drive.ask({ id: "e", state: {} })).toMatchObject({ id: "e", state: {} });
  expect(performance.now() - since).toBeGreaterThan(800 * (refused.error?.retry_after_seconds ?? 0));
});

test("a frame with more than 1,000 keys ends its stream before parsing", async () => {
  await using drive = await openDrive(await gateway.addAccount());
  const keys = Array.from({ length: 1_001 }, (_, index) => [`k${index}`, index]);
  drive.socket.send(JSON.stringify({ id: "a", ...Object.fromEntries(keys) }));
  expect((await once(drive.socket, "close"))[0]).toBe(1008);
});

/** Opens a gRPC stream of serialized messages. */
function openStream(method: string, key: string): ClientDuplexStream<Uint8Array, Buffer> {
  const client = new Client(gateway.grpcAddress, credentials.createInsecure());
  onTestFinished(() => client.close());
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${key}`);
  const toBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes);
  const same = (bytes: Buffer): Buffer => bytes;
  return client.makeBidiStreamRequest(`/pilothouse.v1.SessionService/${method}`, toBuffer, same, metadata);
}

/** Sends a message on a gRPC stream. Returns the error that ends the stream. */
async function errorAfter(method: string, message: Buffer): Promise<unknown> {
  const stream = openStream(method, await gateway.addAccount());
  stream.write(message);
  const [error] = await new Promise<unknown[]>((resolve) => stream.resume().on("error", (...all) => resolve(all)));
  return error;
}

test("a gRPC message with more than 2,000 fields ends its stream before parsing", async () => {
  // Field number 1000, varint 0.
  const error = await errorAfter("Drive", Buffer.from("c03e00".repeat(2_001), "hex"));
  expect(error).toMatchObject({ code: 3, details: "message: has more than 2000 fields" });
});

test("a gRPC message of a CDP client has at most 1 MiB", async () => {
  const error = await errorAfter("Cdp", Buffer.alloc(mebibyte + 1));
  expect(error).toMatchObject({ code: 8, details: expect.stringContaining("1048577 vs 1048576") });
});

/** Opens a CDP stream to a new session. */
async function openCdp(key: string): Promise<ClientDuplexStream<Uint8Array, Buffer>> {
  const { body } = await gateway.as(key)("/v1/sessions", {});
  const stream = openStream("Cdp", key);
  // Ends with its client.
  stream.on("error", () => undefined);
  stream.write(toBinary(CdpRequestSchema, create(CdpRequestSchema, { sessionId: body.id })));
  return stream;
}

interface Load {
  readonly parts: number;
  readonly bytes: number;
}

/** Sends parts of CDP messages. Returns a function that counts the parts that the worker has echoed. */
function relay(stream: ClientDuplexStream<Uint8Array, Buffer>, { parts, bytes }: Load): () => number {
  const part = toBinary(CdpRequestSchema, create(CdpRequestSchema, { data: Buffer.alloc(bytes, " "), last: true }));
  let returned = 0;
  stream.on("data", (answer: Buffer) => {
    if (answer.length >= bytes) returned += 1;
  });
  for (let sent = 0; sent < parts; sent += 1) stream.write(part);
  return () => returned;
}

test.each([
  ["2,000 messages", { parts: 2_000, bytes: 100 }],
  ["4 MiB", { parts: 16, bytes: 256 * kibibyte }],
])("the CDP streams of an account relay at most %s per second together", async (_, load) => {
  const busy = await gateway.addAccount();
  const streams = await Promise.all([1, 2, 3, 4].map(() => openCdp(busy)));
  const other = await openCdp(await gateway.addAccount());
  const counts = streams.map((stream) => relay(stream, load));
  const returned = (): number => counts.reduce((sum, count) => sum + count(), 0);
  const half = { ...load, parts: load.parts / 2 };
  const eventually = { timeout: 20_000 };
  // The first of four loads passes at once. Each further load waits for a second, which delays no other account.
  for (const loads of [1, 2, 3, 4]) {
    await expect.poll(relay(other, half), eventually).toBe(half.parts);
    // The message that opens a stream and the one that waits count too.
    await expect.poll(returned, eventually).toBeGreaterThanOrEqual(loads * load.parts - 8);
    // Waits of less than a millisecond are skipped.
    expect(returned()).toBeLessThanOrEqual(loads * load.parts + 1);
    clock.advance(1_000);
  }
  await expect.poll(returned, eventually).toBe(4 * load.parts);
});
