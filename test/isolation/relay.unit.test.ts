import { once } from "node:events";
import http from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeAddressRules } from "../../src/platform/outgoing/address-rules.ts";
import { EgressRelay, type RelayOptions } from "../../workers/egress/egress-relay.ts";
import { MediaServer } from "../../workers/egress/media-server.ts";
import { privateHosts, resolvePrivate } from "../support/private-targets.ts";
import { keepingLog } from "./world.ts";

const log = keepingLog();
const open: { close(): unknown }[] = [];
let site: http.Server;

beforeEach(async () => {
  site = http.createServer((request, response) => {
    if (request.url === "/hang-up") request.socket.destroy();
    else if (request.url === "/switch")
      request.socket.end("HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n");
    else
      response.writeHead(201, "Made", { "x-seen-host": request.headers.host }).end(`${request.method} ${request.url}`);
  });
  await listen(site);
});

afterEach(() => {
  for (const part of open.splice(0).reverse()) part.close();
  expect(log.complaints).toEqual([]);
});

async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  open.push(server);
  return portOf(server);
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

async function startRelay(options: Partial<RelayOptions> = {}): Promise<{ relay: EgressRelay; port: number }> {
  const relay = new EgressRelay({ rules: makeAddressRules(), log, ...options });
  const port = await listen(createServer((socket) => relay.accept(socket)));
  open.push(relay);
  return { relay, port };
}

async function get(relayPort: number, url: string): Promise<{ response: http.IncomingMessage; body: string }> {
  const request = http.request({ host: "127.0.0.1", port: relayPort, path: url, headers: { host: new URL(url).host } });
  request.end();
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  return { response, body: await text(response) };
}

async function connectThrough(relayPort: number, target: string): Promise<{ status: string; socket: Socket }> {
  const socket = connect(relayPort, "127.0.0.1");
  socket.write(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\n\r\n`);
  const [head] = (await once(socket, "data")) as [Buffer];
  open.push({ close: () => socket.destroy() });
  return { status: head.toString().split("\r\n")[0] ?? "", socket };
}

test("a refused request returns a page with the address and is recorded", async () => {
  const { relay, port } = await startRelay({ showRemedy: true });
  const before = Date.now();
  const { response, body } = await get(port, `http://0x7f.1:${portOf(site)}/secret`);
  expect(response.statusCode).toBe(403);
  expect(response.headers["x-pilothouse-blocked"]).toBe("egress");
  expect(body).toContain(`EGRESS_ALLOW=127.0.0.1:${portOf(site)}`);
  expect(relay.wasRefused("127.0.0.1", portOf(site), before)).toBe(true);
  expect(relay.wasRefused("127.0.0.1", portOf(site), Date.now() + 1)).toBe(false);
  expect(relay.wasRefused("127.0.0.1", 1, before)).toBe(false);
});

test("a refusal page omits the remedy unless the reader is the operator", async () => {
  const { port } = await startRelay();
  expect((await get(port, "http://10.0.0.1/")).body).not.toContain("EGRESS_ALLOW");
});

test("a refusal page never suggests allowing a cloud's metadata address", async () => {
  const { port } = await startRelay({ showRemedy: true });
  const { response, body } = await get(port, "http://0xa9fea9fe/latest/meta-data");
  expect(response.statusCode).toBe(403);
  expect(body).toContain("169.254.169.254:80");
  expect(body).not.toContain("EGRESS_ALLOW");
});

test.each(["GET", "DELETE", "POST"])(
  "forwards the chunked body of a %s as a body and not as a second request",
  async (method) => {
    const seen: string[] = [];
    const reader = http.createServer(async (request, response) => {
      seen.push(`${request.method} ${request.url} ${await text(request)}`);
      response.end("read");
    });
    const { relay, port } = await startRelay();
    const host = `127.0.0.1:${await listen(reader)}`;
    relay.allow.add(host);
    const smuggled = `GET /smuggled HTTP/1.1\r\nhost: ${host}\r\n\r\n`;
    const headers = { host, "transfer-encoding": "chunked" };
    const request = http.request({ host: "127.0.0.1", port, method, path: `http://${host}/`, headers });
    request.end(smuggled);
    await once(request, "response");
    await get(port, `http://${host}/next`);
    expect(seen).toEqual([`${method} / ${smuggled}`, "GET /next "]);
  },
);

test("drops Content-Length from a response with Transfer-Encoding", async () => {
  const liar = createServer((socket) =>
    socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n\r\n"),
  );
  const { relay, port } = await startRelay();
  const host = `127.0.0.1:${await listen(liar)}`;
  relay.allow.add(host);
  const { response, body } = await get(port, `http://${host}/`);
  expect(response.headers["content-length"]).toBeUndefined();
  expect(body).toBe("whole");
});

test.each(privateHosts)("refuses a tunnel to %s", async (host) => {
  const { relay, port } = await startRelay({ resolve: resolvePrivate });
  expect((await connectThrough(port, `${host}:443`)).status).toBe("HTTP/1.1 403 Forbidden");
  expect(relay.refusals).toHaveLength(1);
});

test("refuses a name if any of its addresses is private", async () => {
  const resolve = async () => [
    { address: "93.184.215.14", family: 4 },
    { address: "10.0.0.1", family: 4 },
  ];
  const { port } = await startRelay({ resolve });
  expect((await get(port, "http://two-faced.example/")).response.statusCode).toBe(403);
  expect((await connectThrough(port, "two-faced.example:443")).status).toBe("HTTP/1.1 403 Forbidden");
});

test("connects to the checked address even if the name resolves differently afterwards", async () => {
  const answers = [[{ address: "127.0.0.1", family: 4 }], [{ address: "10.0.0.1", family: 4 }]];
  const rules = makeAddressRules({ allow: ["127.0.0.1"] });
  const { port } = await startRelay({ rules, resolve: async () => answers.shift() ?? [] });
  const { response, body } = await get(port, `http://rebinding.example:${portOf(site)}/path?query`);
  expect(response.statusCode).toBe(201);
  expect(response.statusMessage).toBe("Made");
  expect(response.headers["x-seen-host"]).toBe(`rebinding.example:${portOf(site)}`);
  expect(body).toBe("GET /path?query");
  expect((await get(port, `http://rebinding.example:${portOf(site)}/`)).response.statusCode).toBe(403);
});

test("a session's exception allows one host and port, by request and by tunnel", async () => {
  const { relay, port } = await startRelay();
  relay.allow.add(`localhost:${portOf(site)}`);
  expect((await get(port, `http://LOCALHOST:${portOf(site)}/`)).response.statusCode).toBe(201);
  expect((await get(port, `http://127.0.0.1:${portOf(site)}/`)).response.statusCode).toBe(403);
  const { status, socket } = await connectThrough(port, `localhost:${portOf(site)}`);
  expect(status).toBe("HTTP/1.1 200 Connection Established");
  socket.write("GET /tunnelled HTTP/1.1\r\nhost: site\r\nconnection: close\r\n\r\n");
  expect(await text(socket)).toContain("GET /tunnelled");
  expect(relay.bytes.sent).toBeGreaterThan(100);
  expect(relay.bytes.received).toBeGreaterThan(100);
});

test("a failed request ends without a response and its cause is recorded", async () => {
  const { relay, port } = await startRelay({
    resolve: () => Promise.reject(Object.assign(new Error(), { code: "ENOTFOUND" })),
  });
  relay.allow.add(`127.0.0.1:${portOf(site)}`);
  relay.allow.add("127.0.0.1:1");
  await expect(get(port, "http://nowhere.example/")).rejects.toThrow("socket hang up");
  await expect(get(port, "http://127.0.0.1:1/")).rejects.toThrow("socket hang up");
  await expect(get(port, `http://127.0.0.1:${portOf(site)}/hang-up`)).rejects.toThrow("socket hang up");
  expect((await connectThrough(port, "nowhere.example:443")).status).toBe("HTTP/1.1 502 Bad Gateway");
  expect((await connectThrough(port, "127.0.0.1:1")).status).toBe("HTTP/1.1 502 Bad Gateway");
  expect(relay.failureOf("nowhere.example", 80, 0)?.netError).toBe("ERR_NAME_NOT_RESOLVED");
  expect(relay.failureOf("nowhere.example", 443, 0)?.netError).toBe("ERR_NAME_NOT_RESOLVED");
  expect(relay.failureOf("127.0.0.1", 1, 0)?.netError).toBe("ERR_CONNECTION_REFUSED");
  expect(relay.failureOf("127.0.0.1", portOf(site), 0)?.netError).toBe("ERR_CONNECTION_RESET");
});

test("closing the relay ends its tunnels on both sides and refuses new connections", async () => {
  const accepted: Socket[] = [];
  const target = await listen(createServer((socket) => void accepted.push(socket)));
  const { relay, port } = await startRelay();
  relay.allow.add(`127.0.0.1:${target}`);
  const { socket } = await connectThrough(port, `127.0.0.1:${target}`);
  const ends = [socket, ...accepted].map((end) => once(end, "close"));
  for (const end of [socket, ...accepted]) end.on("error", () => undefined).resume();
  relay.close();
  expect(await Promise.all(ends)).toHaveLength(2);
  await expect(get(port, "http://10.0.0.1/")).rejects.toThrow();
});

test.each(["GET / HTTP/1.1", "GET ftp://example.com/ HTTP/1.1", "CONNECT nonsense HTTP/1.1", "CONNECT a/b:1 HTTP/1.1"])(
  "answers %s with 400",
  async (line) => {
    const { port } = await startRelay();
    const socket = connect(port, "127.0.0.1");
    socket.write(`${line}\r\nhost: example.com\r\n\r\n`);
    expect(await text(socket)).toContain("HTTP/1.1 400 ");
  },
);

test("treats an unrequested protocol switch of a site as a missing response", async () => {
  const { relay, port } = await startRelay();
  relay.allow.add(`127.0.0.1:${portOf(site)}`);
  await expect(get(port, `http://127.0.0.1:${portOf(site)}/switch`)).rejects.toThrow("socket hang up");
});

test("limits concurrent lookups and resolves all names in order", async () => {
  const waiting: (() => void)[] = [];
  const resolve = async () => {
    await new Promise<void>((proceed) => waiting.push(proceed));
    return [{ address: "10.0.0.1", family: 4 }];
  };
  const { port } = await startRelay({ resolve });
  const answers = Promise.all(Array.from({ length: 7 }, (_, index) => get(port, `http://slow-${index}.example/`)));
  for (const batch of [3, 3, 1]) {
    await expect.poll(() => waiting.length).toBe(batch);
    for (const proceed of waiting.splice(0)) proceed();
  }
  expect((await answers).map(({ response }) => response.statusCode)).toEqual(Array(7).fill(403));
});

test("keeps the newest 256 refusals", async () => {
  const { relay, port } = await startRelay();
  for (let index = 0; index < 260; index += 1) await get(port, `http://10.0.0.1:${1000 + index}/`);
  expect(relay.refusals).toHaveLength(256);
  expect(relay.refusals.at(-1)?.port).toBe(1259);
});

const spellings = [
  "127.0.0.1",
  "127.0.0.1.",
  "127.1",
  "2130706433",
  "0x7f.1",
  "0x7f000001",
  "0177.0.0.1",
  "localhost",
  "LocalHost.",
  "[::ffff:127.0.0.1]",
  "[::ffff:7f00:1]",
  "[0:0:0:0:0:ffff:127.0.0.1]",
  "[64:ff9b::7f00:1]",
  "media.example",
];

test.each(spellings)("refuses the media server as %s even if its network is allowed", async (host) => {
  const rules = makeAddressRules({ allow: ["127.0.0.0/8"] });
  const resolve = async () => [{ address: "127.0.0.1", family: 4 }];
  const mediaServer = new MediaServer(`ws://127.0.0.1:${portOf(site)}`);
  const { port } = await startRelay({ rules, resolve, mediaServer });
  const target = `${host}:${portOf(site)}`;
  expect((await get(port, `http://${target}/`)).response.statusCode).toBe(403);
  expect((await connectThrough(port, target)).status).toBe("HTTP/1.1 403 Forbidden");
});

test("a stand-in address works for tunnels of its own relay only, until disposed of", async () => {
  const { relay, port } = await startRelay();
  const { port: other } = await startRelay();
  const standIn = relay.createStandIn({ host: "127.0.0.1", port: portOf(site) });
  const target = `${standIn.host}:${standIn.port}`;
  const statusOf = async (relayPort: number, asked: string) => (await connectThrough(relayPort, asked)).status;
  expect(await statusOf(port, target)).toContain(" 200 ");
  expect((await get(port, `http://${target}/`)).response.statusCode).toBe(403);
  expect(await statusOf(other, target)).toContain(" 403 ");
  const beside = `${standIn.host}:${standIn.port === 65_535 ? 65_534 : standIn.port + 1}`;
  expect(await statusOf(port, beside)).toContain(" 403 ");
  standIn[Symbol.dispose]();
  expect(await statusOf(port, target)).toContain(" 403 ");
});
