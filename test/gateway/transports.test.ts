import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { connect as connectTcp } from "node:net";
import { text as readText } from "node:stream/consumers";
import { promisify } from "node:util";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { addAccount } from "../e2e/support/accounts.ts";
import { expectProblem, type Received, type Request, send } from "../e2e/support/problem.ts";
import { bodyParts, startTransportGateway, type TransportGateway } from "./transport-gateway.ts";

const run = promisify(execFile);
const mebibyte = 1024 * 1024;

let gateway: TransportGateway;
beforeAll(async () => {
  gateway = await startTransportGateway({
    CORS_ORIGINS: "https://app.example",
    TRUSTED_PROXIES: "127.0.0.1",
  });
});
afterAll(() => gateway?.[Symbol.asyncDispose]());

const ask = (request: Request): Promise<Received> => send(gateway, request);

/** Sends text on a new connection. Returns everything received until the server closes the connection. */
async function raw(text: string): Promise<string> {
  const socket = connectTcp(Number(new URL(gateway.url).port), "127.0.0.1");
  socket.write(text);
  const parts: Buffer[] = [];
  for await (const part of socket) parts.push(part);
  return Buffer.concat(parts).toString("latin1");
}

describe("a raw request body", () => {
  const put = (body: unknown, headers: Record<string, string | null> = {}) =>
    ask({ method: "PUT", path: "/v1/things/t/files/cat.png", body, headers });

  test.each(["image/png", "application/json", "text/plain; charset=latin1"])(
    "of type %s is passed on",
    async (type) => {
      const { status, text } = await put(randomBytes(3 * mebibyte), { "content-type": type });
      expect([status, JSON.parse(text)]).toEqual([201, { content_type: type, name: "cat.png", bytes: 3 * mebibyte }]);
    },
  );

  test("without type and length is passed on", async () => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let part = 0; part < 3; part += 1) controller.enqueue(randomBytes(65_536));
        controller.close();
      },
    });
    const { status, text } = await put(body, { "content-type": null });
    expect([status, JSON.parse(text)]).toMatchObject([
      201,
      { content_type: "application/octet-stream", bytes: 196_608 },
    ]);
  });

  test("refused midway leaves its connection usable for the next request", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const options = { agent, headers: { authorization: `Bearer ${gateway.key}` } };
    const url = `${gateway.url}/v1/things/t/files/cat.png`;
    const put = request(url, { ...options, method: "PUT" });
    put.write(Buffer.alloc(4 * mebibyte));
    // Small enough that the client has sent the rest before it reads the response.
    put.end(Buffer.alloc(mebibyte / 4));
    const [refused] = await once(put, "response");
    expect([refused.statusCode, await readText(refused)]).toEqual([
      400,
      expect.stringContaining("is larger than 4 MiB"),
    ]);
    const get = request(url, options).end();
    const [answer] = await once(get, "response");
    expect([answer.statusCode, get.reusedSocket, (await readText(answer)).length]).toEqual([200, true, 200_000]);
  });

  test("larger than the method's limit is refused, with or without a length", async () => {
    for (const length of [{ "content-length": 4 * mebibyte + 1 }, { "transfer-encoding": "chunked" }]) {
      const headers = { authorization: `Bearer ${gateway.key}`, ...length };
      // The gateway closes the connection, which a shared agent could use for the next request.
      const large = request(`${gateway.url}/v1/things/t/files/cat.png`, { agent: false, method: "PUT", headers });
      large.on("error", () => undefined).end(Buffer.alloc(4 * mebibyte + 1));
      const [refused] = await once(large, "response");
      const { detail, type } = JSON.parse(await readText(refused));
      expect([refused.statusCode, detail, type]).toEqual([
        400,
        "body: is larger than 4 MiB",
        expect.stringMatching(/validation-failed$/),
      ]);
    }
  });

  test("is not read without a key", async () => {
    const refused = await put(Buffer.alloc(1000), { authorization: null });
    expectProblem(refused, { status: 401, slug: "unauthorized" });
  });

  test("is part of the message over Connect and gRPC, up to the method's limit", async () => {
    const { input, output, parent } = gateway.method("PutFile");
    const content = { contentType: "image/png", data: randomBytes(mebibyte * 1.5) };
    const request = toBinary(input, create(input, { id: "t", name: "cat.png", content }));
    const path = `/${parent.typeName}/PutFile`;
    const answered = await fetch(`${gateway.url}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${gateway.key}`, "content-type": "application/proto" },
      body: request,
    });
    expect(fromBinary(output, await answered.bytes())).toMatchObject({ bytes: 1.5 * mebibyte });
    const tooLarge = toBinary(input, create(input, { id: "t", content: { data: Buffer.alloc(2 * mebibyte) } }));
    const { error, answer } = await callGrpc(path, Buffer.from(request));
    expect(error).toBeUndefined();
    expect(fromBinary(output, answer ?? Buffer.alloc(0))).toMatchObject({ bytes: 1.5 * mebibyte });
    expect((await callGrpc(path, Buffer.from(tooLarge))).error?.message).toMatch(/RESOURCE_EXHAUSTED/);
  });
});

/** Makes a unary gRPC call with serialized messages on GRPC_PORT. */
function callGrpc(
  path: string,
  request: Buffer,
  headers: Record<string, string> = { authorization: `Bearer ${gateway.key}` },
): Promise<{ error?: Error; answer?: Buffer | undefined; headers: Record<string, unknown> }> {
  const client = new Client(gateway.grpcAddress, credentials.createInsecure());
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  const same = (bytes: Buffer): Buffer => bytes;
  const options = { deadline: Date.now() + 20_000 };
  return new Promise((resolve) => {
    let received = {};
    client
      .makeUnaryRequest(path, same, same, request, metadata, options, (error, answer) => {
        client.close();
        resolve({ ...(error && { error }), answer, headers: received });
      })
      .on("metadata", (answered) => {
        received = answered.getMap();
      });
  });
}

describe("a raw response", () => {
  const get = (path: string, method = "GET") =>
    fetch(`${gateway.url}/v1/things/${path}`, { method, headers: { authorization: `Bearer ${gateway.key}` } });

  test("is sent in parts, as an attachment that cannot run as a page", async () => {
    const response = await get(`whole/files/${encodeURIComponent('Grüße "1".html')}`);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "content-type": "text/html",
      "content-disposition": `attachment; filename="Gr__e _1_.html"; filename*=UTF-8''Gr%C3%BC%C3%9Fe%20%221%22.html`,
      "content-security-policy": "sandbox; default-src 'none'",
      "x-content-type-options": "nosniff",
    });
    expect(Buffer.from(await response.arrayBuffer()).equals(Buffer.concat(bodyParts))).toBe(true);
  });

  // Exit codes of curl for a partial file and for an unclean end of a stream.
  test.each([
    ["--http1.1", 18],
    ["--http2-prior-knowledge", 92],
  ])("that fails midway is reported as incomplete by curl %s", async (version, code) => {
    const file = `${gateway.url}/v1/things/broken/files/a`;
    const args = ["-sS", version, "-H", `Authorization: Bearer ${gateway.key}`, "-o", "/dev/null", file];
    await expect(run("curl", args)).rejects.toMatchObject({ code });
  });

  test("to HEAD only has headers, and its producer stops", async () => {
    const response = await get("headed/files/a", "HEAD");
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/html"]);
    expect(await waitUntil(() => !gateway.followed.has("headed"), { timeout: 20_000, every: 20 })).toBe(true);
  });
});

test("HEAD of an event stream opens no stream", async () => {
  const { status, headers } = await ask({ method: "HEAD", path: "/v1/things/quiet/events" });
  expect([status, headers.get("content-type")]).toEqual([200, "text/event-stream"]);
  expect(await waitUntil(() => !gateway.followed.has("quiet"), { timeout: 20_000, every: 20 })).toBe(true);
});

test("an account has at most 256 streams, and may open another one after a stream has ended", async () => {
  const headers = { authorization: `Bearer ${gateway.key}` };
  const rest = new AbortController();
  const follow = (thing: string, signal = rest.signal): Promise<Response> =>
    fetch(`${gateway.url}/v1/things/${thing}/events`, { headers, signal });
  const first = new AbortController();
  try {
    const all = Array.from({ length: 256 }, (_, index) => follow(`${index}`, index === 0 ? first.signal : rest.signal));
    const opened = await Promise.all(all);
    const refused = await follow("beyond");
    // Keeps the responses until here: a garbage-collected response closes its stream.
    expect(opened.filter(({ status }) => status !== 200)).toEqual([]);
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({
      type: expect.stringMatching(/tier-limit$/),
      current_streams: 256,
      limit: 256,
    });
    first.abort();
    await expect.poll(async () => (await follow("again")).status, { timeout: 10_000 }).toBe(200);
  } finally {
    rest.abort();
  }
  await expect.poll(() => gateway.followed.size, { timeout: 10_000 }).toBe(0);
});

describe("a WebSocket", () => {
  async function open(thing: string, key = gateway.key): Promise<{ client: WebSocket; messages: (string | Buffer)[] }> {
    const client = new WebSocket(`${gateway.url.replace("http", "ws")}/v1/things/${thing}/talk`, {
      headers: { authorization: `Bearer ${key}` },
    });
    const messages: (string | Buffer)[] = [];
    client.on("message", (data, isBinary) => messages.push(isBinary ? (data as Buffer) : data.toString()));
    await once(client, "open");
    return { client, messages };
  }
  const closed = async (client: WebSocket): Promise<number> => (await once(client, "close"))[0];

  test("carries text as JSON, and bytes as protobuf in binary frames", async () => {
    const { input, output } = gateway.method("Talk");
    const { client, messages } = await open(encodeURIComponent("a thing/ü"));
    client.send(JSON.stringify({ id: "1", text: "hello" }));
    client.send(toBinary(input, create(input, { id: "2", data: Buffer.from([1, 2, 3]) })));
    client.send(JSON.stringify({ end: true }));
    expect(await closed(client)).toBe(1000);
    const [text, binary] = messages;
    expect(JSON.parse(String(text))).toMatchObject({ thing_id: "a thing/ü", id: "1", text: "hello" });
    const answered = fromBinary(output, binary as Buffer);
    expect(answered).toMatchObject({ thingId: "a thing/ü", id: "2" });
    expect([...toBinary(output, answered).subarray(-3)]).toEqual([1, 2, 3]);
  });

  test("accepts messages up to the method's limit", async () => {
    const { client, messages } = await open("t");
    client.send(JSON.stringify({ text: "x".repeat(1.5 * mebibyte) }));
    await once(client, "message");
    expect(String(messages[0]).length).toBeGreaterThan(1.5 * mebibyte);
    client.send("x".repeat(2 * mebibyte + 1));
    expect(await closed(client)).toBe(1009);
  });

  test("answers invalid messages in order, and all messages before an invalid frame", async () => {
    const { client, messages } = await open("t");
    client.send(JSON.stringify({ id: "1", text: "one" }));
    client.send(JSON.stringify({ id: "2", nothing: 1 }));
    client.send(JSON.stringify({ id: "3", text: "three" }));
    client.send("no JSON");
    client.send(JSON.stringify({ id: "4", text: "too late" }));
    expect(await closed(client)).toBe(1008);
    const answers = messages.map((message) => JSON.parse(String(message)));
    expect(answers.map(({ id }) => id)).toEqual(["1", "2", "3"]);
    expect(answers[1].error).toMatchObject({ status: 400, errors: [{ field: "nothing" }] });
  });

  test("returns at most 50 faults of a message", async () => {
    const { client, messages } = await open("t");
    client.send(JSON.stringify(Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`k${index}`, 0]))));
    client.send(JSON.stringify({ end: true }));
    await closed(client);
    expect(JSON.parse(String(messages[0])).error.errors).toHaveLength(50);
  });

  test("consumes a token for an invalid message", async () => {
    const key = await addAccount(gateway);
    const left = async (): Promise<number> => {
      const { headers } = await send({ ...gateway, key }, { path: "/v1/things/t/events", method: "HEAD" });
      return Number(headers.get("x-ratelimit-remaining"));
    };
    const before = await left();
    const { client } = await open("t", key);
    for (let fault = 0; fault < 20; fault += 1) client.send(JSON.stringify({ nothing: fault }));
    client.send(JSON.stringify({ end: true }));
    await closed(client);
    // Some tokens are refilled in the meantime.
    expect(before - (await left())).toBeGreaterThan(10);
  });

  test("logs an internal error once", async () => {
    const { client } = await open("t");
    const before = gateway.logged.length;
    client.send(JSON.stringify({ text: "break" }));
    expect(await closed(client)).toBe(1013);
    expect(gateway.logged.slice(before)).toHaveLength(1);
  });

  const upgrade = (path: string, more = "") =>
    raw(
      `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        `Sec-WebSocket-Version: 13\r\nX-Forwarded-For: 10.9.9.9\r\n${more}\r\n`,
    );

  test("to an unknown path is refused with not-found, and consumes a token of the address", async () => {
    const remaining = (answer: string): number => Number(/x-ratelimit-remaining: (\d+)/.exec(answer)?.[1]);
    const [first, second] = [await upgrade("/v1/no/talk"), await upgrade("/v1/no/talk")];
    expect(first).toMatch(/^HTTP\/1\.1 404 /);
    expect(first).toMatch(/content-type: application\/problem\+json/);
    expect(remaining(second)).toBe(remaining(first) - 1);
  });

  test("with an invalid handshake is refused with a problem", async () => {
    const answer = await upgrade("/v1/things/t/talk", `Authorization: Bearer ${gateway.key}\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain('"detail":"Sec-WebSocket-Key: expected 16 bytes in base64"');
  });
});

describe("an offer of another protocol", () => {
  test("by Java's HttpClient is ignored, and its HTTP/1.1 connection stays usable", async () => {
    const body = '{"id":"x"}';
    const socket = connectTcp(Number(new URL(gateway.url).port), "127.0.0.1");
    socket.write(
      "POST /v1/nothing HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\n" +
        `Content-Length: ${body.length}\r\nHost: localhost\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n` +
        `Upgrade: h2c\r\nUser-Agent: Java-http-client/21\r\nContent-Type: application/json\r\n\r\n${body}`,
    );
    const [first] = await once(socket, "data");
    expect(String(first)).toMatch(/^HTTP\/1\.1 404 [^\0]*"detail":"no endpoint has this path: /);
    socket.write("GET /docs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    const [second] = await once(socket, "data");
    expect(String(second)).toMatch(/^HTTP\/1\.1 200 /);
    socket.destroy();
  });

  test("by curl --http2 is ignored", async () => {
    const common = ["-sS", "--http2", "-H", `Authorization: Bearer ${gateway.key}`, "-w", "%{http_code}"];
    const { stdout } = await run("curl", [...common, "-T", import.meta.filename, `${gateway.url}/v1/things/t/files/a`]);
    expect(stdout).toMatch(/"name":"a".*\n201$/);
  });
});

describe("a response", () => {
  test.each(["card_declined", "ERR_HTTP"])("to a library error with code %s is an internal error", async (id) => {
    const { status, text } = await ask({ path: `/v1/things/${id}/break`, body: {} });
    expect(text).not.toContain("declined");
    expect([status, JSON.parse(text).status]).toEqual([500, 500]);
  });

  test.each([
    ["an unsupported expectation", "GET /docs HTTP/1.1\r\nHost: localhost\r\nExpect: foo\r\n", "Expect: must be"],
    ["a request without Host", "GET /docs HTTP/1.1\r\n", "Host: is required"],
    ["long headers", `GET /docs HTTP/1.1\r\nX-Long: ${"a".repeat(17_000)}\r\n`, "headers: must have at most 16384"],
    ["invalid HTTP", "nonsense\r\n", "request: cannot be read as HTTP/1.1: check"],
  ])("to %s is a problem", async (_, head, detail) => {
    const answer = await raw(`${head}Connection: close\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toMatch(/x-request-id: req_/);
    expect(answer).toContain(`"detail":"${detail}`);
    expect(answer).not.toContain("HPE_");
  });

  test("to a CORS preflight has rate limit headers, and every response varies by origin", async () => {
    const headers = { origin: "https://app.example", "access-control-request-method": "PUT" };
    const preflight = await ask({ method: "OPTIONS", path: "/v1/things/t/files/a", headers });
    expect([preflight.status, preflight.headers.get("access-control-allow-origin")]).toEqual([204, headers.origin]);
    const foreign = await ask({ path: "/docs", headers: { origin: "https://other.example" } });
    expect(foreign.headers.get("access-control-allow-origin")).toBeNull();
    expect(foreign.headers.get("vary")).toBe("Origin, Accept-Encoding");
  });

  test("to QUERY without a content type is method-not-allowed", async () => {
    const answer = await raw("QUERY /v1/things/t/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    expect(answer).toMatch(/^HTTP\/1\.1 405 /);
    expect(answer).toMatch(/allow: GET, HEAD/);
  });

  test("to a compressed body names Content-Encoding", async () => {
    const headers = { "content-encoding": "gzip" };
    const answer = await ask({ path: "/v1/things/t/break", body: Buffer.from([31, 139, 8]), headers: { ...headers } });
    expectProblem(answer, { status: 400, slug: "bad-request", detail: "Content-Encoding: " });
  });

  test("to GET ignores the content type, and a path with an empty name is not-found", async () => {
    const headers = { "content-type": "text/plain" };
    expect((await ask({ method: "HEAD", path: "/v1/things/t/events", headers })).status).toBe(200);
    const answer = await ask({ path: "/v1/things/t/files/" });
    expectProblem(answer, {
      status: 404,
      slug: "not-found",
      detail: "no endpoint has this path: /docs lists all endpoints",
    });
  });

  test("keeps its connection open for longer than clients do", async () => {
    const answer = await raw(
      "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HTTP/1.1\r\nConnection: close\r\nHost: a\r\n\r\n",
    );
    expect(answer).toMatch(/keep-alive: timeout=75/i);
  });

  test.each(["/docs", "/v1/openapi.json"])("of %s is compressed if the client accepts it", async (path) => {
    const [plain, packed, refused] = await Promise.all(
      ["identity", "br;q=1.0, gzip;q=0.8", "gzip;q=0"].map(async (coding) => {
        const { stdout } = await run(
          "curl",
          ["-sS", "-i", "-H", `Accept-Encoding: ${coding}`, `${gateway.url}${path}`],
          {
            encoding: "latin1",
          },
        );
        return stdout;
      }),
    );
    expect(packed).toMatch(/content-encoding: gzip/i);
    expect(packed?.length).toBeLessThan((plain?.length ?? 0) / 2);
    expect(refused).not.toMatch(/content-encoding/i);
  });

  test("on GRPC_PORT has the rate limit of the client address that a trusted proxy sends", async () => {
    const path = "/pilothouse.test.TransportService/PutFile";
    const from = async (address: string): Promise<number> => {
      const { headers } = await callGrpc(path, Buffer.alloc(0), { "x-forwarded-for": address });
      return Number(headers["x-ratelimit-remaining"]);
    };
    const first = await from("10.7.7.1");
    expect(await from("10.7.7.1")).toBe(first - 1);
    expect(await from("10.7.7.2")).toBe(first);
  });
});
