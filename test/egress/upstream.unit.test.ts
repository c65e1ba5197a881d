import { once } from "node:events";
import http from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ProxySchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { makeAddressRules } from "../../src/platform/outgoing/address-rules.ts";
import type { Resolve } from "../../src/platform/outgoing/target-resolution.ts";
import { EgressRelay } from "../../workers/egress/egress-relay.ts";
import type { EgressChange } from "../../workers/egress/upstream-watch.ts";
import { keepingLog } from "../isolation/world.ts";
import { privateHosts } from "../support/private-targets.ts";
import { ProxyStandIn } from "../support/proxy-stand-in.ts";

const log = keepingLog();
const open: { close(): unknown }[] = [];
const nowhere = () => Promise.reject(Object.assign(new Error(), { code: "ENOTFOUND" }));

/** Records of the fake resolver. The proxy is `proxy.example`. */
const names: Readonly<Record<string, string>> = {
  "proxy.example": "127.0.0.1",
  "public.example": "93.184.215.14",
  "private.example": "10.0.0.1",
  "metadata.example": "169.254.169.254",
  localhost: "127.0.0.1",
};
const resolveHere: Resolve = async (name) => {
  const address = names[name];
  return address === undefined ? nowhere() : [{ address, family: 4 }];
};

let site: http.Server;
let proxy: ProxyStandIn;
let proxyPort: number;

beforeEach(async () => {
  site = http.createServer((request, response) => void response.end(`site ${request.url}`));
  proxy = new ProxyStandIn(await listen(site));
  proxyPort = await proxy.start();
  open.push({ close: () => proxy.stop() });
});

afterEach(() => {
  for (const part of open.splice(0).reverse()) part.close();
  expect(log.complaints).toEqual([]);
});

async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  open.push(server);
  return (server.address() as AddressInfo).port;
}

interface Through {
  server?: string;
  password?: string;
  resolve?: Resolve;
}

async function relayThrough({ server = `http://proxy.example:${proxyPort}`, password, resolve }: Through = {}) {
  const rules = makeAddressRules({ allow: [server.replace(/^\w+:\/\//, "")] });
  const relay = new EgressRelay({ rules, log, resolve: resolve ?? resolveHere });
  const changes: EgressChange[] = [];
  const login = password === undefined ? {} : { username: "ada", password };
  const use = { check: "check.example:443", onChange: (change: EgressChange) => void changes.push(change) };
  relay.useUpstream(create(ProxySchema, { server, ...login }), use);
  const port = await listen(createServer((socket) => relay.accept(socket)));
  open.push(relay);
  return { relay, port, changes };
}

async function get(port: number, url: string): Promise<{ status: number | undefined; body: string }> {
  const request = http.request({ host: "127.0.0.1", port, path: url, headers: { host: new URL(url).host } }).end();
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  return { status: response.statusCode, body: await text(response) };
}

async function connectThrough(port: number, target: string): Promise<{ status: string; socket: Socket }> {
  const socket = connect(port, "127.0.0.1");
  open.push({ close: () => socket.destroy() });
  socket.write(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\n\r\n`);
  const [head] = (await once(socket, "data")) as [Buffer];
  return { status: head.toString().split("\r\n")[0] ?? "", socket };
}

test.each([...privateHosts, "PROXY.example"])("never requests %s from a proxy, by request or tunnel", async (host) => {
  const { relay, port } = await relayThrough();
  expect((await get(port, `http://${host}/`)).status).toBe(403);
  expect((await connectThrough(port, `${host}:443`)).status).toBe("HTTP/1.1 403 Forbidden");
  expect(relay.refused).toBe(2);
  expect(proxy.asked).toEqual([]);
});

test("does not request a name from a private proxy if its local lookup times out", async () => {
  const never = new Promise<never>(() => undefined);
  const resolve: Resolve = (host) => (host === "late.example" ? never : resolveHere(host));
  const { relay, port } = await relayThrough({ resolve });
  await expect(get(port, "http://late.example/")).rejects.toThrow("socket hang up");
  expect(relay.failureOf("late.example", 80, 0)?.netError).toBe("ERR_CONNECTION_TIMED_OUT");
  expect(proxy.asked).toEqual([]);
});

test("sends plain http to the proxy in absolute form and all else by tunnel, with unresolved names", async () => {
  const { relay, port, changes } = await relayThrough();
  expect(await get(port, "http://public.example/path?query")).toEqual({ status: 200, body: "through the stand-in" });
  expect(await get(port, "http://public.example:8080/")).toMatchObject({ status: 200 });
  const { status, socket } = await connectThrough(port, "public.example:443");
  expect(status).toBe("HTTP/1.1 200 Connection Established");
  socket.write("GET /tunnelled HTTP/1.1\r\nhost: public.example\r\nconnection: close\r\n\r\n");
  expect(await text(socket)).toContain("site /tunnelled");
  expect(proxy.asked).toEqual([
    "GET http://public.example/path?query",
    "GET http://public.example:8080/",
    "CONNECT public.example:443",
  ]);
  expect(changes).toEqual([{ capability: "verified", reason: "" }]);
  expect(relay.bytes.sent).toBeGreaterThan(200);
  expect(relay.bytes.received).toBeGreaterThan(200);
});

test("leaves a name without a local address to the proxy", async () => {
  const { port } = await relayThrough();
  expect((await connectThrough(port, "elsewhere.example:443")).status).toBe("HTTP/1.1 200 Connection Established");
  expect(proxy.asked).toEqual(["CONNECT elsewhere.example:443"]);
});

test("makes no local lookups behind a proxy on the public internet", async () => {
  const asked: string[] = [];
  const resolve: Resolve = async (name) => {
    asked.push(name);
    // Public when its network is checked, then the address of the fake proxy.
    return [{ address: asked.length === 1 ? "93.184.215.14" : "127.0.0.1", family: 4 }];
  };
  const { port } = await relayThrough({ resolve });
  expect((await connectThrough(port, "private.example:443")).status).toBe("HTTP/1.1 200 Connection Established");
  expect(await get(port, "http://public.example/")).toMatchObject({ status: 200 });
  for (const host of ["10.0.0.1", "localhost", "metadata.google.internal"]) {
    expect((await connectThrough(port, `${host}:443`)).status).toBe("HTTP/1.1 403 Forbidden");
  }
  expect(new Set(asked)).toEqual(new Set(["proxy.example"]));
  expect(proxy.asked).toEqual(["CONNECT private.example:443", "GET http://public.example/"]);
});

test("looks up the network of a proxy again after a failed lookup", async () => {
  const asked: string[] = [];
  const resolve: Resolve = async (name) => {
    asked.push(name);
    if (asked.length === 1) return nowhere();
    // Public when its network is checked, then the address of the fake proxy.
    return [{ address: asked.length === 3 ? "93.184.215.14" : "127.0.0.1", family: 4 }];
  };
  const { port } = await relayThrough({ resolve });
  expect((await connectThrough(port, "10.example.com:443")).status).toBe("HTTP/1.1 403 Forbidden");
  expect((await connectThrough(port, "public.example:443")).status).toBe("HTTP/1.1 200 Connection Established");
  expect(asked).toEqual(["proxy.example", "10.example.com", "proxy.example", "proxy.example"]);
});

test("connects directly to the session's own exceptions", async () => {
  const { relay, port } = await relayThrough();
  const { port: sitePort } = site.address() as AddressInfo;
  relay.allow.add(`127.0.0.1:${sitePort}`);
  expect(await get(port, `http://127.0.0.1:${sitePort}/own`)).toEqual({ status: 200, body: "site /own" });
  expect((await connectThrough(port, `127.0.0.1:${sitePort}`)).status).toBe("HTTP/1.1 200 Connection Established");
  expect(proxy.asked).toEqual([]);
});

test("checks and pins the proxy's own name for every connection", async () => {
  // The first answer determines its network.
  const answers = ["127.0.0.1", "127.0.0.1", "10.0.0.1"];
  const resolve: Resolve = async (name) =>
    name === "proxy.example" ? [{ address: answers.shift() ?? "10.0.0.1", family: 4 }] : resolveHere(name);
  const relay = new EgressRelay({ rules: makeAddressRules({ allow: ["127.0.0.1"] }), log, resolve });
  open.push(relay);
  const server = `http://proxy.example:${proxyPort}`;
  relay.useUpstream(create(ProxySchema, { server }), { check: "check.example:443", onChange: () => undefined });
  const port = await listen(createServer((socket) => relay.accept(socket)));
  expect((await connectThrough(port, "public.example:443")).status).toBe("HTTP/1.1 200 Connection Established");
  expect((await connectThrough(port, "public.example:443")).status).toBe("HTTP/1.1 502 Bad Gateway");
  expect(relay.failureOf("public.example", 443, 0)?.proxyFault).toContain("is not a public address");
});

test("hides a proxy's 407 from pages and treats a revoked login as a loss", async () => {
  const { relay, port, changes } = await relayThrough({ password: "word" });
  proxy.wanted = `Basic ${Buffer.from("ada:word").toString("base64")}`;
  expect((await get(port, "http://public.example/")).status).toBe(200);
  proxy.wanted = "another";
  await expect(get(port, "http://public.example/")).rejects.toThrow("socket hang up");
  expect(relay.failureOf("public.example", 80, 0)?.netError).toBe("ERR_PROXY_AUTH_REQUESTED");
  expect((await connectThrough(port, "public.example:443")).status).toBe("HTTP/1.1 502 Bad Gateway");
  await expect.poll(() => changes.at(-1)).toEqual({ capability: "lost", reason: "auth_failed" });
  expect(relay.state).toBe("lost");
});

test("closing the relay ends its connections to the proxy", async () => {
  const { relay, port } = await relayThrough();
  const { socket } = await connectThrough(port, "public.example:443");
  socket.on("error", () => undefined).resume();
  await get(port, "http://public.example/");
  expect(proxy.connections).toBe(2);
  relay.close();
  await expect.poll(() => proxy.connections).toBe(0);
});

test("accepts fragmented SOCKS5 replies with names, and sends names and addresses unchanged", async () => {
  const received: Buffer[] = [];
  const answers = [Buffer.from([5, 0]), Buffer.from([5, 0, 0, 3, 3, 97, 46, 98, 0, 80, 104, 105])];
  const socks = createServer((socket) => {
    open.push({ close: () => socket.destroy() });
    const left = [...answers];
    socket
      .on("error", () => undefined)
      .on("data", (bytes) => {
        received.push(bytes);
        for (const byte of left.shift() ?? []) socket.write(Buffer.from([byte]));
      });
  });
  const { port } = await relayThrough({ server: `socks5://proxy.example:${await listen(socks)}` });
  const { status, socket } = await connectThrough(port, "public.example:443");
  expect(status).toBe("HTTP/1.1 200 Connection Established");
  expect(received[1]).toEqual(Buffer.from([5, 1, 0, 3, 14, ...Buffer.from("public.example"), 1, 187]));
  await expect.poll(() => socket.bytesRead).toBe("HTTP/1.1 200 Connection Established\r\n\r\nhi".length);
  await connectThrough(port, "[2606:2800::1]:443");
  const address = [0x26, 0x06, 0x28, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
  expect(received[3]).toEqual(Buffer.from([5, 1, 0, 4, ...address, 1, 187]));
  await connectThrough(port, "93.184.215.14:80");
  expect(received[5]).toEqual(Buffer.from([5, 1, 0, 1, 93, 184, 215, 14, 0, 80]));
});
