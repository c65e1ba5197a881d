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
import { chunkedBody } from "../support/chunked-body.ts";
import { bodyParts, type DoorGateway, startDoorGateway } from "./door-gateway.ts";

const run = promisify(execFile);
const mebibyte = 1024 * 1024;

let gateway: DoorGateway;
beforeAll(async () => {
  gateway = await startDoorGateway({
    CORS_ORIGINS: "https://app.example",
    TRUSTED_PROXIES: "127.0.0.1",
  });
});
afterAll(() => gateway?.[Symbol.asyncDispose]());

const ask = (request: Request): Promise<Received> => send(gateway, request);

/** Writes text on a connection of its own, and gives all that comes back until the other side closes it. */
async function raw(text: string): Promise<string> {
  const socket = connectTcp(Number(new URL(gateway.url).port), "127.0.0.1");
  socket.write(text);
  const parts: Buffer[] = [];
  for await (const part of socket) parts.push(part);
  return Buffer.concat(parts).toString("latin1");
}

describe("raw request bodies", () => {
  const put = (body: unknown, headers: Record<string, string | null> = {}) =>
    ask({ method: "PUT", path: "/v1/things/t/files/cat.png", body, headers });

  test.each(["image/png", "application/json", "text/plain; charset=latin1"])(
    "of type %s are handed on",
    async (type) => {
      const { status, text } = await put(randomBytes(3 * mebibyte), { "content-type": type });
      expect([status, JSON.parse(text)]).toEqual([201, { content_type: type, name: "cat.png", bytes: 3 * mebibyte }]);
    },
  );

  test("of no type and no length are handed on", async () => {
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

  test("that are refused midway leave their connection to the next request", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const options = { agent, headers: { authorization: `Bearer ${gateway.key}` } };
    const url = `${gateway.url}/v1/things/t/files/cat.png`;
    const put = request(url, { ...options, method: "PUT" });
    put.write(Buffer.alloc(4 * mebibyte));
    // So little is left when it is refused that the client has sent all of it before it reads the answer.
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

  test("larger than the method says are refused, before or while they come", async () => {
    const expected = { status: 400, slug: "validation-failed", detail: "body: is larger than 4 MiB" };
    expectProblem(await put(Buffer.alloc(4 * mebibyte + 1)), expected);
    expectProblem(await put(chunkedBody(8 * mebibyte)), expected);
  });

  test("are not read without a key", async () => {
    const refused = await put(Buffer.alloc(1000), { authorization: null });
    expectProblem(refused, { status: 401, slug: "unauthorized" });
  });

  test("travel in the message over Connect and gRPC, as large as the method says", async () => {
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

/** A unary call on GRPC_PORT, of bytes. */
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

describe("raw answers", () => {
  const get = (path: string, method = "GET") =>
    fetch(`${gateway.url}/v1/things/${path}`, { method, headers: { authorization: `Bearer ${gateway.key}` } });

  test("come in parts, as a file that is never a page of ours", async () => {
    const response = await get(`whole/files/${encodeURIComponent('Grüße "1".html')}`);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "content-type": "text/html",
      "content-disposition": `attachment; filename="Gr__e _1_.html"; filename*=UTF-8''Gr%C3%BC%C3%9Fe%20%221%22.html`,
      "content-security-policy": "sandbox; default-src 'none'",
      "x-content-type-options": "nosniff",
    });
    expect(Buffer.from(await response.arrayBuffer()).equals(Buffer.concat(bodyParts))).toBe(true);
  });

  // Exit codes of curl: a partial file, and a stream that was not closed cleanly.
  test.each([
    ["--http1.1", 18],
    ["--http2-prior-knowledge", 92],
  ])("that fail midway are visibly broken to curl %s", async (version, code) => {
    const file = `${gateway.url}/v1/things/broken/files/a`;
    const args = ["-sS", version, "-H", `Authorization: Bearer ${gateway.key}`, "-o", "/dev/null", file];
    await expect(run("curl", args)).rejects.toMatchObject({ code });
  });

  test("to HEAD are their headers alone, and nobody goes on producing them", async () => {
    const response = await get("headed/files/a", "HEAD");
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/html"]);
    expect(await waitUntil(() => !gateway.followed.has("headed"), { timeout: 20_000, every: 20 })).toBe(true);
  });
});

test("HEAD of an event stream leaves nobody following", async () => {
  const { status, headers } = await ask({ method: "HEAD", path: "/v1/things/quiet/events" });
  expect([status, headers.get("content-type")]).toEqual([200, "text/event-stream"]);
  expect(await waitUntil(() => !gateway.followed.has("quiet"), { timeout: 20_000, every: 20 })).toBe(true);
});

test("an account has at most 256 streams, and another when one of them has gone", async () => {
  const headers = { authorization: `Bearer ${gateway.key}` };
  const rest = new AbortController();
  const follow = (thing: string, signal = rest.signal): Promise<Response> =>
    fetch(`${gateway.url}/v1/things/${thing}/events`, { headers, signal });
  const first = new AbortController();
  try {
    const all = Array.from({ length: 256 }, (_, index) => follow(`${index}`, index === 0 ? first.signal : rest.signal));
    const opened = await Promise.all(all);
    const refused = await follow("beyond");
    // An answer that nobody holds is garbage, and its stream ends with it: these are held until here.
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

describe("WebSockets", () => {
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

  test("carry text as JSON, and bytes as protobuf in binary frames", async () => {
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

  test("take messages as large as the method says", async () => {
    const { client, messages } = await open("t");
    client.send(JSON.stringify({ text: "x".repeat(1.5 * mebibyte) }));
    await once(client, "message");
    expect(String(messages[0]).length).toBeGreaterThan(1.5 * mebibyte);
    client.send("x".repeat(2 * mebibyte + 1));
    expect(await closed(client)).toBe(1009);
  });

  test("answer faulty messages in their turn, and what came before a frame that is none", async () => {
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

  test("list at most 50 faults of a message", async () => {
    const { client, messages } = await open("t");
    client.send(JSON.stringify(Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`k${index}`, 0]))));
    client.send(JSON.stringify({ end: true }));
    await closed(client);
    expect(JSON.parse(String(messages[0])).error.errors).toHaveLength(50);
  });

  test("draw a token for a faulty message", async () => {
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
    // Some come back meanwhile.
    expect(before - (await left())).toBeGreaterThan(10);
  });

  test("log a failure of ours once", async () => {
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

  test("of an unknown path are not-found, and draw a token of the address", async () => {
    const remaining = (answer: string): number => Number(/x-ratelimit-remaining: (\d+)/.exec(answer)?.[1]);
    const [first, second] = [await upgrade("/v1/no/talk"), await upgrade("/v1/no/talk")];
    expect(first).toMatch(/^HTTP\/1\.1 404 /);
    expect(first).toMatch(/content-type: application\/problem\+json/);
    expect(remaining(second)).toBe(remaining(first) - 1);
  });

  test("are refused with a problem when the handshake is wrong", async () => {
    const answer = await upgrade("/v1/things/t/talk", `Authorization: Bearer ${gateway.key}\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain('"detail":"Sec-WebSocket-Version: ');
  });
});

describe("other protocols that a client offers", () => {
  test("Java's HttpClient is served over HTTP/1.1, on one connection", async () => {
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

  test("curl --http2 is, too", async () => {
    const common = ["-sS", "--http2", "-H", `Authorization: Bearer ${gateway.key}`, "-w", "%{http_code}"];
    const { stdout } = await run("curl", [...common, "-T", import.meta.filename, `${gateway.url}/v1/things/t/files/a`]);
    expect(stdout).toMatch(/"name":"a".*\n201$/);
  });
});

describe("answers", () => {
  test.each(["card_declined", "ERR_HTTP"])("an error of a library with code %s is ours", async (id) => {
    const { status, text } = await ask({ path: `/v1/things/${id}/break`, body: {} });
    expect(text).not.toContain("declined");
    expect([status, JSON.parse(text).status]).toEqual([500, 500]);
  });

  test.each([
    [
      "an expectation that is none of ours",
      "GET /docs HTTP/1.1\r\nHost: localhost\r\nExpect: foo\r\n",
      "Expect: must be",
    ],
    ["a request without Host", "GET /docs HTTP/1.1\r\n", "Host: is required"],
    ["too long a head", `GET /docs HTTP/1.1\r\nX-Long: ${"a".repeat(17_000)}\r\n`, "headers: must have at most 16384"],
    ["what is no HTTP", "nonsense\r\n", "request: cannot be read as HTTP/1.1: check"],
  ])("%s is a problem", async (_, head, detail) => {
    const answer = await raw(`${head}Connection: close\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toMatch(/x-request-id: req_/);
    expect(answer).toContain(`"detail":"${detail}`);
    expect(answer).not.toContain("HPE_");
  });

  test("CORS preflights show the rate limit, and every answer depends on the origin", async () => {
    const headers = { origin: "https://app.example", "access-control-request-method": "PUT" };
    const preflight = await ask({ method: "OPTIONS", path: "/v1/things/t/files/a", headers });
    expect([preflight.status, preflight.headers.get("access-control-allow-origin")]).toEqual([204, headers.origin]);
    const foreign = await ask({ path: "/docs", headers: { origin: "https://other.example" } });
    expect(foreign.headers.get("access-control-allow-origin")).toBeNull();
    expect(foreign.headers.get("vary")).toBe("Origin, Accept-Encoding");
  });

  test("method QUERY without a content type is method-not-allowed", async () => {
    const answer = await raw("QUERY /v1/things/t/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    expect(answer).toMatch(/^HTTP\/1\.1 405 /);
    expect(answer).toMatch(/allow: GET, HEAD/);
  });

  test("a compressed body names Content-Encoding", async () => {
    const headers = { "content-encoding": "gzip" };
    const answer = await ask({ path: "/v1/things/t/break", body: Buffer.from([31, 139, 8]), headers: { ...headers } });
    expectProblem(answer, { status: 400, slug: "bad-request", detail: "Content-Encoding: " });
  });

  test("GET may carry a content type, and a path may not end in nothing", async () => {
    const headers = { "content-type": "text/plain" };
    expect((await ask({ method: "HEAD", path: "/v1/things/t/events", headers })).status).toBe(200);
    const answer = await ask({ path: "/v1/things/t/files/" });
    expectProblem(answer, {
      status: 404,
      slug: "not-found",
      detail: "no endpoint has this path: /docs lists all endpoints",
    });
  });

  test("connections are kept for longer than clients keep them", async () => {
    const answer = await raw(
      "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HTTP/1.1\r\nConnection: close\r\nHost: a\r\n\r\n",
    );
    expect(answer).toMatch(/keep-alive: timeout=75/i);
  });

  test.each(["/docs", "/v1/openapi.json"])("%s is compressed for those who take it", async (path) => {
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

  test("GRPC_PORT believes trusted proxies who the client is", async () => {
    const path = "/pilothouse.test.DoorService/PutFile";
    const from = async (address: string): Promise<number> => {
      const { headers } = await callGrpc(path, Buffer.alloc(0), { "x-forwarded-for": address });
      return Number(headers["x-ratelimit-remaining"]);
    };
    const first = await from("10.7.7.1");
    expect(await from("10.7.7.1")).toBe(first - 1);
    expect(await from("10.7.7.2")).toBe(first);
  });
});
