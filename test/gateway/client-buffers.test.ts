import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import {
  CaptureKind,
  type CaptureStreamResponse,
  CaptureStreamResponseSchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";

const mebibyte = 2 ** 20;

/** Capture of 3 MiB without its last part. */
async function* capture({ signal }: { readonly signal: AbortSignal }): AsyncGenerator<CaptureStreamResponse> {
  const header = { kind: CaptureKind.SCREENSHOT, contentType: "image/png", bytes: BigInt(3 * mebibyte) };
  yield create(CaptureStreamResponseSchema, { header });
  await once(signal, "abort");
}

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway({ CLIENT_BUFFER_MIB: "8" });
  await gateway.running.worker({ slots: 30, handlers: { capture } });
});
afterAll(() => gateway?.[Symbol.asyncDispose]());

async function metric(name: string): Promise<Record<string, number>> {
  const { values } = await (gateway.running.app.metrics.getSingleMetric(name)?.get() ??
    expect.fail(`no metric ${name}`));
  return Object.fromEntries(values.map(({ labels, value }) => [Object.values(labels)[0], value]));
}

/** Returns the buffered mebibytes by kind. */
async function held(): Promise<Record<string, number>> {
  const bytes = Object.entries(await metric("pilothouse_client_buffer_bytes"));
  return Object.fromEntries(bytes.flatMap(([kind, value]) => (value > 0 ? [[kind, value / mebibyte]] : [])));
}

beforeEach(() => expect.poll(held).toEqual({}));

/** Starts a request that never sends its body of 1 MiB. */
async function leaveBody(key: string, headers = `Content-Length: ${mebibyte}`): Promise<Socket> {
  const socket = connect(Number(new URL(gateway.url).port), "127.0.0.1").on("error", () => undefined);
  onTestFinished(() => void socket.destroy());
  const lines = ["POST /v1/recipes HTTP/1.1", "Host: localhost", "Content-Type: application/json", headers];
  socket.resume().write(`${lines.join("\r\n")}\r\nAuthorization: Bearer ${key}\r\n\r\n`);
  await once(socket, "connect");
  return socket;
}

async function leaveBodies(key: string, count: number): Promise<readonly Socket[]> {
  return Promise.all(Array.from({ length: count }, () => leaveBody(key)));
}

/** Opens a CDP connection to a new session. */
async function openCdp(key: string): Promise<WebSocket> {
  const { body } = await gateway.as(key)("/v1/sessions", {});
  const url = `${gateway.url.replace("http", "ws")}/v1/sessions/${body.id}/cdp`;
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${key}` } }).on("error", () => undefined);
  onTestFinished(() => socket.terminate());
  await once(socket, "open");
  return socket;
}

const closeOf = async (socket: WebSocket): Promise<unknown> => {
  const [code, reason] = await once(socket, "close");
  return [code, String(reason)];
};

test("an account above its share is refused beyond the budget, other accounts are not", async () => {
  const [greedy, modest] = [await gateway.addAccount(), await gateway.addAccount()];
  const bodies = await leaveBodies(greedy, 9);
  await expect.poll(held).toEqual({ body: 9 });
  const refused = await gateway.as(greedy)("/v1/sessions");
  expect(refused).toMatchObject({
    status: 429,
    body: {
      type: expect.stringMatching(/rate-limited$/),
      retry_after_seconds: 1,
      detail: "the service holds 9 MiB of your requests, messages and unread responses; finish and read them",
    },
  });
  expect(refused.headers.get("retry-after")).toBe("1");
  expect(refused.headers.get("x-ratelimit-bucket")).toBe("global");
  expect(refused.headers.get("x-ratelimit-remaining")).toBe("0");
  expect((await gateway.as(modest)("/v1/sessions")).status).toBe(200);
  expect((await metric("pilothouse_client_buffer_overruns_total")).refused).toBeGreaterThan(0);
  for (const body of bodies) body.destroy();
  await expect.poll(held).toEqual({});
  expect((await gateway.as(greedy)("/v1/sessions")).status).toBe(200);
});

test("beyond 1.25 of the budget only the streams of the largest holder are closed", async () => {
  const [greedy, modest] = [await gateway.addAccount(), await gateway.addAccount()];
  const other = await openCdp(modest);
  const bodies = await leaveBodies(greedy, 9);
  await expect.poll(held).toEqual({ body: 9 });
  const closed = Promise.all(bodies.map((body) => once(body, "close")));
  other.send(" ".repeat(2 * mebibyte), { fin: false });
  await closed;
  await expect.poll(held).toEqual({ message: expect.closeTo(2, 2) });
  const answered = once(other, "message");
  other.send(" ", { fin: true });
  await answered;
});

test("an unfinished message of an account above its share closes its WebSocket", async () => {
  const key = await gateway.addAccount();
  const [first, second] = [await openCdp(key), await openCdp(key)];
  first.send(" ".repeat(5 * mebibyte), { fin: false });
  await expect.poll(held).toEqual({ message: expect.closeTo(5, 2) });
  const before = (await metric("pilothouse_client_buffer_overruns_total")).refused ?? 0;
  second.send(" ".repeat(4 * mebibyte), { fin: false });
  expect(await closeOf(second)).toEqual([1013, "over_budget"]);
  expect((await metric("pilothouse_client_buffer_overruns_total")).refused).toBe(before + 1);
  await expect.poll(held).toEqual({ message: expect.closeTo(5, 2) });
  expect(first.readyState).toBe(WebSocket.OPEN);
});

test("a stream message beyond the budget is refused under its id", async () => {
  const key = await gateway.addAccount();
  const { body } = await gateway.as(key)("/v1/sessions", {});
  const url = `${gateway.url.replace("http", "ws")}/v1/sessions/${body.id}/drive`;
  const drive = new WebSocket(url, ["pilothouse.v1"], { headers: { authorization: `Bearer ${key}` } });
  onTestFinished(() => drive.terminate());
  await once(drive, "open");
  await leaveBodies(key, 9);
  await expect.poll(held).toEqual({ body: 9 });
  const answered = once(drive, "message");
  drive.send(JSON.stringify({ id: "a", state: {} }));
  const answer = JSON.parse(String((await answered)[0]));
  expect(answer).toMatchObject({ id: "a", error: { retry_after_seconds: 1, detail: expect.stringMatching(/9 MiB/) } });
});

test("a body without a length counts as the largest one", async () => {
  await leaveBody(await gateway.addAccount(), "Transfer-Encoding: chunked");
  await expect.poll(held).toEqual({ body: 1 });
});

test("unread responses to a CDP client are counted", async () => {
  const socket = await openCdp(await gateway.addAccount());
  socket.pause();
  // The worker echoes the messages. Socket buffers of the kernel are not counted.
  for (let count = 0; count < 24; count += 1) socket.send(" ".repeat(mebibyte));
  await expect.poll(async () => (await held()).answer, { timeout: 10_000 }).toBeGreaterThanOrEqual(1);
});

test.each([
  ["gRPC call", () => `http://${gateway.grpcAddress}`, "application/grpc", "Create"],
  ["gRPC stream", () => `http://${gateway.grpcAddress}`, "application/grpc", "Drive"],
  ["Connect stream", () => gateway.url, "application/connect+proto", "Drive"],
] as const)("an unfinished message of a %s is counted", async (_, address, type, method) => {
  const session = connectHttp2(address()).on("error", () => undefined);
  onTestFinished(() => session.destroy());
  const head = Buffer.alloc(5);
  head.writeUInt32BE(mebibyte, 1);
  const authorization = `Bearer ${await gateway.addAccount()}`;
  const path = `/pilothouse.v1.SessionService/${method}`;
  const headers = { ":method": "POST", ":path": path, "content-type": type, te: "trailers", authorization };
  const call = session.request(headers, { endStream: false }).on("error", () => undefined);
  call.write(Buffer.concat([head, Buffer.alloc(mebibyte / 2)]));
  await expect.poll(held).toEqual({ message: expect.closeTo(0.5, 3) });
});

test("a capture assembled for a Connect client is counted", async () => {
  const key = await gateway.addAccount();
  const { body } = await gateway.as(key)("/v1/sessions", {});
  const request = { id: body.id, kind: "CAPTURE_KIND_SCREENSHOT" };
  const leaving = new AbortController();
  const capturing = gateway.as(key)("/pilothouse.v1.SessionService/Capture", request, { signal: leaving.signal });
  await expect.poll(held).toEqual({ capture: 3 });
  leaving.abort();
  await expect(capturing).rejects.toThrow(/abort/);
});
