import { once } from "node:events";
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { timeLimits } from "../../gateway/time-limits.ts";
import { startTransportGateway, type TransportGateway } from "./transport-gateway.ts";

const reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const check = "/grpc.health.v1.Health/Check";
const watch = "/grpc.health.v1.Health/Watch";

const [invalidArgument, resourceExhausted] = ["3", "8"];

let gateway: TransportGateway;
let session: ClientHttp2Session;
beforeAll(async () => {
  gateway = await startTransportGateway({ TRUSTED_PROXIES: "127.0.0.1" }, { ...timeLimits, open: 500 });
});
afterAll(() => gateway?.[Symbol.asyncDispose]());

// A call refused before its client has ended it closes its connection.
beforeEach(() => {
  session = connect(`http://${gateway.grpcAddress}`).on("error", () => undefined);
});
afterEach(() => session.destroy());

/** Opens a call without credentials. The client does not end the call. */
function open(path: string, address: string): ClientHttp2Stream {
  const headers = { "content-type": "application/grpc", te: "trailers", "x-forwarded-for": address };
  return session
    .request({ ":method": "POST", ":path": path, ...headers }, { endStream: false })
    .on("error", () => undefined)
    .resume();
}

/** Frames a gRPC message. A larger `length` announces an unfinished message. */
function framed(message: Buffer, length = message.length): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, message]);
}

/** Returns the status with which the server ends a call. */
async function statusOf(call: ClientHttp2Stream): Promise<{ code: unknown; message: string }> {
  const headers = await Promise.race([
    once(call, "trailers").then(([trailers]) => trailers),
    once(call, "response").then(([head]) => ("grpc-status" in head ? head : new Promise(() => undefined))),
  ]);
  return { code: headers["grpc-status"], message: decodeURIComponent(String(headers["grpc-message"] ?? "")) };
}

const listServices = framed(Buffer.from([0x3a, 0]));

test("a call outside the registry is refused for a message over 4 KiB before the message has arrived", async () => {
  const call = open(reflection, "203.0.113.1");
  call.write(framed(Buffer.alloc(100), 4_097));
  expect(await statusOf(call)).toMatchObject({
    code: resourceExhausted,
    message: expect.stringMatching(/4097 vs 4096/),
  });
});

test.each([
  ["reflection", reflection],
  ["health", check],
])("a %s call ends if its request is not complete in time", async (_, path) => {
  const call = open(path, "203.0.113.2");
  expect(await statusOf(call)).toMatchObject({
    code: invalidArgument,
    message: expect.stringMatching(/must arrive within/),
  });
});

test("a health watch remains open after its request is complete", async () => {
  const call = open(watch, "203.0.113.3");
  call.end(framed(Buffer.alloc(0)));
  await once(call, "response");
  // Waits until another call, opened later, has timed out.
  await statusOf(open(check, "203.0.113.3"));
  expect(call.closed).toBe(false);
  call.close();
});

test("a client address may have at most 32 open calls outside the registry", async () => {
  const calls = Array.from({ length: 32 }, () => open(watch, "203.0.113.4"));
  for (const call of calls) call.end(framed(Buffer.alloc(0)));
  await Promise.all(calls.map((call) => once(call, "response")));
  const refused = open(check, "203.0.113.4");
  expect(await statusOf(refused)).toMatchObject({
    code: resourceExhausted,
    message: expect.stringMatching(/has 32 open health or reflection calls/),
  });
  const [first] = calls;
  first?.close();
  await (first && once(first, "close"));
  const next = open(check, "203.0.113.4");
  next.end(framed(Buffer.alloc(0)));
  expect(await statusOf(next)).toMatchObject({ code: "0" });
  for (const call of calls) call.close();
});

test("calls outside the registry consume tokens of their address", async () => {
  const ask = (): Promise<{ code: unknown; message: string }> => {
    const call = open(check, "203.0.113.5");
    call.end(framed(Buffer.alloc(0)));
    return statusOf(call);
  };
  const codes: unknown[] = [];
  for (let asked = 0; asked < 60; asked += 1) codes.push((await ask()).code);
  expect(new Set(codes)).toEqual(new Set(["0"]));
  // One token is added each second.
  const [last] = [await ask(), await ask(), await ask()].filter(({ code }) => code !== "0");
  expect(last).toMatchObject({
    code: resourceExhausted,
    message: expect.stringMatching(/rate limit "global" of your address exceeded/),
  });
});

test("a reflection call accepts at most 100 messages", async () => {
  const call = open(reflection, "203.0.113.6");
  for (let asked = 0; asked <= 100; asked += 1) call.write(listServices);
  expect(await statusOf(call)).toMatchObject({
    code: resourceExhausted,
    message: expect.stringMatching(/accepts at most 100 messages/),
  });
});
