import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CreateProfileRequestSchema } from "../../src/gen/pilothouse/v1/profile_pb.ts";
import { sleep } from "../../src/platform/bounded-wait.ts";
import type { Clock } from "../../src/platform/clock.ts";
import { envelope } from "../hostile-bytes/bytes.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway?.[Symbol.asyncDispose]());

const kibibyte = 1024;

async function post(path: string, body: string): Promise<{ status: number; detail?: string; text: string }> {
  const headers = { "content-type": "application/json", authorization: `Bearer ${gateway.running.app.developerKey}` };
  const response = await fetch(`${gateway.url}${path}`, { method: "POST", headers, body });
  const text = await response.text();
  return { status: response.status, detail: JSON.parse(text).detail, text };
}

const objectOf = (keys: number): string =>
  `{${Array.from({ length: keys }, (_, index) => `"k${index}":${index}`).join(",")}}`;

describe("a REST body", () => {
  test.each([
    ["5,001 keys", objectOf(5_001), "body: has more than 5000 keys"],
    ["20,001 elements", `{"steps":[${"0,".repeat(20_000)}0]}`, "body: has more than 20000 elements"],
  ])("with %s is refused", async (_, body, detail) => {
    expect(await post("/v1/recipes", body)).toMatchObject({ status: 400, detail });
  });

  test("with 5,000 keys is accepted", async () => {
    expect((await post("/v1/recipes", objectOf(5_000))).detail).toMatch(/k0: is not a known field/);
  });
});

describe("messages of 1 MiB wait for the allowance of their account", () => {
  // Below the limit of 1 MiB, with its envelope.
  const name = "x".repeat(1_000 * kibibyte);
  const json = JSON.stringify({ name });
  const binary = Buffer.from(toBinary(CreateProfileRequestSchema, create(CreateProfileRequestSchema, { name })));
  const path = "/pilothouse.v1.ProfileService/Create";
  const doors: readonly [door: string, send: (to: TestGateway, authorization: string) => Promise<unknown>][] = [
    ["REST", (to, authorization) => send(to, "/v1/profiles", "application/json", json, authorization)],
    ["Connect", (to, authorization) => send(to, path, "application/proto", binary, authorization)],
    [
      "a Connect stream",
      (to, authorization) => send(to, path, "application/grpc-web", envelope(0, binary), authorization),
    ],
    ["GRPC_PORT", (to, authorization) => callGrpc(to, path, binary, authorization)],
  ];

  async function send(
    { url }: TestGateway,
    to: string,
    type: string,
    body: string | Buffer,
    authorization: string,
  ): Promise<unknown> {
    const response = await fetch(`${url}${to}`, {
      method: "POST",
      headers: { "content-type": type, authorization },
      body: typeof body === "string" ? body : new Uint8Array(body),
    });
    return response.arrayBuffer();
  }

  async function callGrpc(
    { grpcAddress }: TestGateway,
    method: string,
    message: Buffer,
    authorization: string,
  ): Promise<void> {
    const session = connectHttp2(`http://${grpcAddress}`);
    const headers = { ":method": "POST", "content-type": "application/grpc", te: "trailers", authorization };
    const stream = session.request({ ...headers, ":path": method });
    stream.resume().end(envelope(0, message));
    await once(stream, "close");
    session.close();
  }

  test.each(doors)("%s", async (_, sendLarge) => {
    const waits: number[] = [];
    const clock: Partial<Clock> = {
      monotonic: () => 1_000_000,
      sleep(milliseconds, signal) {
        waits.push(Math.round(milliseconds));
        return sleep(milliseconds, signal);
      },
    };
    await using still = await startTestGateway({}, { clock });
    const key = await still.addAccount();
    await Promise.all(Array.from({ length: 6 }, () => sendLarge(still, `Bearer ${key}`)));
    // While the clock stands still, the allowance of 4 MiB is not renewed.
    expect(waits.filter((wait) => wait > 0 && wait % 10 !== 0)).toEqual([221, 465]);
  });
});

describe("an HTTP/1.1 body that is refused", () => {
  test.each([
    ["by its length", "POST /v1/auth/login HTTP/1.1"],
    ["before it is read", "POST /v1/nowhere HTTP/1.1"],
    ["for want of a key", "POST /v1/sessions HTTP/1.1"],
  ])("%s is not read to its end", async (_, line) => {
    const socket = connect(Number(new URL(gateway.url).port), "127.0.0.1");
    await once(socket, "connect");
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.on("error", () => undefined);
    let answer = "";
    socket.setEncoding("latin1").on("data", (text) => (answer += text));
    const part = Buffer.alloc(64 * kibibyte, " ");
    const parts = 1_024;
    socket.write(
      `${line}\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${parts * part.length}\r\n\r\n`,
    );
    let sent = 0;
    for (; sent < parts && !socket.destroyed; sent++) {
      if (!socket.write(part)) await Promise.race([once(socket, "drain").catch(() => undefined), closed]);
    }
    await closed;
    expect(answer).toMatch(/^HTTP\/1\.1 4\d\d /);
    // The bytes beyond 2 MiB are in buffers of the kernel.
    expect(sent * part.length).toBeLessThan((parts * part.length) / 2);
  });
});

describe("a body of a public method", () => {
  const logIn = (length: number): string => JSON.stringify({ email: "a@b.example", password: "x".repeat(length) });

  test.each(["/v1/auth/login", "/pilothouse.v1.AuthService/LogIn"])("over 16 KiB is refused at %s", async (path) => {
    const { status, text } = await post(path, logIn(16 * kibibyte));
    expect(status).toBeGreaterThanOrEqual(400);
    expect(text).toMatch(/is larger than 16 KiB|is larger than configured/);
  });

  test("of 16 KiB is accepted", async () => {
    const body = logIn(16 * kibibyte - logIn(0).length);
    expect((await post("/v1/auth/login", body)).detail).toMatch(/password: must have 1 to 256/);
  });

  test("may be 256 KiB for a notice of a payment processor", async () => {
    const notice = await post("/processors/stripe", " ".repeat(256 * kibibyte));
    expect(notice).toMatchObject({ status: 400, text: "{}" });
    const larger = await post("/processors/stripe", " ".repeat(256 * kibibyte + 1));
    expect(larger).toMatchObject({ status: 400, detail: "body: is larger than 256 KiB" });
  });
});
