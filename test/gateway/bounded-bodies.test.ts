import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
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
