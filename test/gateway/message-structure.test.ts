import type { IncomingHttpHeaders } from "node:http";
import { connect } from "node:http2";
import { fromJson, toBinary } from "@bufbuild/protobuf";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { readMessage } from "../../gateway/unread-messages.ts";
import { SendAgentMessageRequestSchema } from "../../src/gen/pilothouse/v1/agent_turn_pb.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";

let gateway: TestGateway;
let key: string;
beforeAll(async () => {
  gateway = await startTestGateway();
  key = await gateway.addAccount();
});
afterAll(() => gateway?.[Symbol.asyncDispose]());

/** Returns a message with unknown fields: number 1000, varint 0. */
const fields = (count: number): Buffer => Buffer.from("c03e00".repeat(count), "hex");

const keys = (count: number): Buffer =>
  Buffer.from(`{${Array.from({ length: count }, (_, index) => `"k${index}":${index}`).join(",")}}`);

const service = "/pilothouse.v1.SessionService";

describe("a unary Connect message", () => {
  async function post(contentType: string, body: Buffer): Promise<string> {
    const headers = { "content-type": contentType, authorization: `Bearer ${key}` };
    const response = await fetch(`${gateway.url}${service}/List`, {
      method: "POST",
      headers,
      body: new Uint8Array(body),
    });
    return `${response.status} ${await response.text()}`;
  }

  test.each([
    ["25,001 fields", "application/proto", fields(25_001), "message: has more than 25000 fields"],
    ["5,001 keys", "application/json", keys(5_001), "message: has more than 5000 keys"],
  ])("with %s is refused before parsing", async (_, type, body, message) => {
    const answer = await post(type, body);
    expect(answer).toMatch(/^400 /);
    expect(answer).toContain(`"code":"invalid_argument","message":"${message}"`);
  });

  test.each(["{", '{"limit":}', '{"limit" 1}', "undefined"])("with the invalid JSON %s is refused", async (body) => {
    expect(await post("application/json", Buffer.from(body))).toBe(
      '400 {"code":"invalid_argument","message":"the message is not JSON"}',
    );
  });

  test.each([
    ["25,000 fields", "application/proto", fields(25_000)],
    ["5,000 keys", "application/json", keys(5_000)],
  ])("with %s is accepted", async (_, type, body) => {
    expect(await post(type, body)).toMatch(/^200 /);
  });
});

test("a unary gRPC message with more than 25,000 fields is refused before parsing", async () => {
  const client = new Client(gateway.grpcAddress, credentials.createInsecure());
  onTestFinished(() => client.close());
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${key}`);
  const same = (bytes: Buffer): Buffer => bytes;
  const call = (message: Buffer): Promise<unknown> =>
    new Promise((resolve) => client.makeUnaryRequest(`${service}/List`, same, same, message, metadata, resolve));
  expect(await call(fields(25_001))).toMatchObject({ code: 3, details: "message: has more than 25000 fields" });
  expect(await call(fields(25_000))).toBeNull();
});

/** Sends a stream message in parts over a protocol of Connect. Returns the end of the stream. */
async function endOfStream(contentType: string, message: Buffer): Promise<string> {
  const session = connect(gateway.url).on("error", () => undefined);
  onTestFinished(() => session.destroy());
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  const headers = { "content-type": contentType, te: "trailers", authorization: `Bearer ${key}` };
  const call = session.request({ ":method": "POST", ":path": `${service}/Drive`, ...headers }, { endStream: false });
  call.write(head.subarray(0, 2));
  call.write(Buffer.concat([head.subarray(2), message.subarray(0, 100)]));
  call.write(message.subarray(100));
  let trailers: IncomingHttpHeaders = {};
  call.on("trailers", (all) => {
    trailers = all;
  });
  let text = "";
  for await (const chunk of call) text += chunk;
  // gRPC-Web sends its trailers in the body, with the same encoding.
  return `${text}${trailers["grpc-message"] ?? ""}`.replace(/%[\dA-F]{2}/g, decodeURIComponent);
}

describe("a stream message", () => {
  test.each([
    ["2,001 fields over Connect", "application/connect+proto", fields(2_001), "has more than 2000 fields"],
    ["1,001 keys over Connect", "application/connect+json", keys(1_001), "has more than 1000 keys"],
    ["2,001 fields over gRPC-Web", "application/grpc-web+proto", fields(2_001), "has more than 2000 fields"],
    ["2,001 fields over gRPC", "application/grpc", fields(2_001), "has more than 2000 fields"],
  ])("with %s ends the stream before parsing", async (_, type, message, reason) => {
    expect(await endOfStream(type, message)).toContain(`message: ${reason}`);
  });
});

describe("the field count of a message", () => {
  const bounds = { keys: 1_000, elements: 1_000 };
  const turn = (outputSchema: object): Uint8Array =>
    toBinary(SendAgentMessageRequestSchema, fromJson(SendAgentMessageRequestSchema, { outputSchema } as never));

  test("includes maps and lists", () => {
    const list = (length: number): number[] => Array.from({ length }, () => 0);
    expect(() => readMessage(SendAgentMessageRequestSchema, turn({ a: list(2_000) }), bounds)).toThrow(/2000 fields/);
    expect(readMessage(SendAgentMessageRequestSchema, turn({ a: list(900) }), bounds).$typeName).toMatch(/Request$/);
  });
});
