import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import http from "node:http";
import https from "node:https";
import { type AddressInfo, createServer, type Server } from "node:net";
import { text } from "node:stream/consumers";
import { setImmediate } from "node:timers/promises";
import { afterEach, expect, test, vi } from "vitest";
import { FetchFault } from "../../src/platform/outgoing/fetch-fault.ts";
import { type FetchRequest, SafeFetch } from "../../src/platform/outgoing/safe-fetch.ts";
import { makeSelfSigned } from "../support/self-signed.ts";

// Needs its own process, because undici keeps one timer for all time limits, which a test here fakes.
/** Certificate for `fixture`, which the resolver of these tests knows. */
const identity = makeSelfSigned();
const here = { address: "127.0.0.1", family: 4 };
const addresses: Readonly<Record<string, string>> = {
  fixture: "127.0.0.1",
  "public.example": "93.184.215.14",
  "private.example": "10.0.0.1",
  localhost: "127.0.0.1",
};

const open: { close(): unknown }[] = [];
afterEach(() => {
  for (const part of open.splice(0).reverse()) part.close();
});

async function listen<Listening extends Server>(server: Listening): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  open.push(server);
  return (server.address() as AddressInfo).port;
}

/** Serves over TLS. Returns the address and a counter of connections. */
async function serve(handle: http.RequestListener): Promise<{ url: string; connections: () => number }> {
  const server = https.createServer(identity, handle);
  let connections = 0;
  server.on("secureConnection", () => {
    connections += 1;
  });
  open.push({ close: () => server.closeAllConnections() });
  return { url: `https://fixture:${await listen(server)}`, connections: () => connections };
}

function makeFetch(options: Partial<ConstructorParameters<typeof SafeFetch>[0]> = {}): SafeFetch {
  const resolve = async (host: string) => {
    const address = addresses[host];
    if (address === undefined) throw Object.assign(new Error(), { code: "ENOTFOUND" });
    return [{ address, family: 4 }];
  };
  const fetch = new SafeFetch({ allow: ["127.0.0.1"], resolve, ca: identity.cert, ...options });
  open.push({ close: () => fetch[Symbol.dispose]() });
  return fetch;
}

const long = 20_000;
function get(more: Partial<FetchRequest> = {}): FetchRequest {
  const times = { connect: long, head: long, silence: long, whole: long };
  return { method: "GET", signal: new AbortController().signal, times, maxBytes: 1_000, ...more };
}
const within = (ms: Partial<FetchRequest["times"]>) => ({ times: { ...get().times, ...ms } });

test.each([
  ["http://public.example/", "does not start with https://"],
  ["https://ada:secret@public.example/", "contains a user name or password"],
  ["https://ada@public.example/", "contains a user name or password"],
  ["https://public.example:22/", "has a port below 1024"],
  ["https://public.example:80/", "has a port below 1024"],
  ["ftp://public.example/", "is not an https URL"],
  ["public.example", "is not an https URL"],
])("%s is rejected: %s", async (address, message) => {
  const fetch = makeFetch({ allow: [] });
  const refusal = { reason: "address_not_allowed", message: expect.stringContaining(message) };
  await expect(fetch.check(address)).rejects.toBeInstanceOf(FetchFault);
  await expect(fetch.send(address, get())).rejects.toMatchObject(refusal);
});

test("a name is rejected if any of its addresses is private, and reported as unreachable if it has none", async () => {
  const twoFaced = makeFetch({ resolve: async () => [{ address: "93.184.215.14", family: 4 }, here], allow: [] });
  await expect(twoFaced.check("https://two-faced.example/")).rejects.toMatchObject({ reason: "address_not_allowed" });
  await expect(makeFetch().check("https://nowhere.example/")).rejects.toMatchObject({ reason: "name_not_resolved" });
  await expect(makeFetch().check("https://public.example:8443/")).resolves.toBeUndefined();
});

/** Sends a request and reads its response. Resolves when the connection can be reused. */
async function fetchText(fetch: SafeFetch, url: string): Promise<string> {
  const answer = await text((await fetch.send(url, get())).body);
  await setImmediate();
  return answer;
}

test("the checked address is the one that is connected to, even if the name resolves differently later", async () => {
  const { url } = await serve((_request, response) => void response.setHeader("connection", "close").end("here"));
  const answers = [[here], [{ address: "10.0.0.1", family: 4 }]];
  const fetch = makeFetch({ resolve: async () => answers.shift() ?? [] });
  expect(await fetchText(fetch, url)).toBe("here");
  await expect(fetch.send(url, get())).rejects.toMatchObject({ reason: "address_not_allowed" });
});

test("a kept connection is used without resolving its name again, but for 30 s at most", async () => {
  const { url, connections } = await serve((_request, response) => void response.end("here"));
  const answers = [[here], [{ address: "127.0.0.2", family: 4 }]];
  const fetch = makeFetch({ allow: ["127.0.0.0/8"], resolve: async () => answers.shift() ?? [] });
  vi.useFakeTimers({ toFake: ["Date"] });
  open.push({ close: () => vi.useRealTimers() });
  const begun = Date.now();
  for (const ms of [0, 29_000]) {
    vi.setSystemTime(begun + ms);
    expect(await fetchText(fetch, url)).toBe("here");
  }
  vi.setSystemTime(begun + 31_000);
  await expect(fetch.send(url, get())).rejects.toMatchObject({ reason: "connection_refused" });
  expect(connections()).toBe(1);
});

test("a request is retried once if the server closes a reused connection", async () => {
  const served: string[] = [];
  const { url, connections } = await serve((request, response) => {
    if (served.push(request.url ?? "") === 2) request.socket.destroy();
    else response.end("here");
  });
  const fetch = makeFetch();
  for (const path of ["/1", "/2"]) expect(await fetchText(fetch, url + path)).toBe("here");
  expect([served, connections()]).toEqual([["/1", "/2", "/2"], 2]);
});

test("a response that switches protocols is rejected", async () => {
  const port = await listen(
    createServer((socket) => void socket.write("HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n")),
  );
  await expect(makeFetch().send(`http://127.0.0.1:${port}/`, get())).rejects.toMatchObject({ reason: "not_http" });
});

/** Starts a name server that knows some names and ignores queries for names with the prefix `silent`. */
async function startNameServer(known: Readonly<Record<string, string>>): Promise<string> {
  const server = createSocket("udp4", (query, peer) => {
    const labels = /^(?:[\s\S]{12})([\s\S]*?)\0/.exec(query.toString("latin1"))?.[1] ?? "";
    const name = labels.replaceAll(/[\0-\x3f]/g, ".").slice(1);
    if (name.startsWith("silent")) return;
    const question = query.subarray(12, 12 + labels.length + 5);
    const address = question.readUInt16BE(labels.length + 1) === 1 ? known[name] : undefined;
    const status = name in known ? 0x80 : 0x83;
    const head = Buffer.from([...query.subarray(0, 2), 0x81, status, 0, 1, 0, address ? 1 : 0, 0, 0, 0, 0]);
    const record = address ? [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...address.split(".").map(Number)] : [];
    server.send(Buffer.concat([head, question, Buffer.from(record)]), peer.port);
  });
  server.bind(0, "127.0.0.1");
  await once(server, "listening");
  open.push(server);
  return `127.0.0.1:${server.address().port}`;
}

test("public names are resolved by name servers, and silent name servers do not block the process", async () => {
  const { url } = await serve((_request, response) => void response.end("here"));
  const known = { fixture: "127.0.0.1", "fixture.example": "127.0.0.1", "inner.example": "10.0.0.1" };
  const nameServers = [await startNameServer(known)];
  const fetch = new SafeFetch({ allow: ["127.0.0.1"], nameServers, ca: identity.cert });
  open.push({ close: () => fetch[Symbol.dispose]() });
  await fetch.check("https://fixture.example/");
  await expect(fetch.send(url.replace("fixture", "fixture.example"), get())).rejects.toMatchObject({ reason: "tls" });
  await expect(fetch.check("https://inner.example/")).rejects.toMatchObject({ reason: "address_not_allowed" });
  await expect(fetch.check("https://unknown.example/")).rejects.toMatchObject({ reason: "name_not_resolved" });
  let settled = 0;
  const silent = Array.from({ length: 16 }, async (_, index) => {
    const sending = fetch.send(`https://silent-${index}.example/`, get());
    await expect(sending).rejects.toMatchObject({ reason: "name_not_resolved" });
    settled += 1;
  });
  await readFile(new URL(import.meta.url));
  await fetch.check("https://fixture.example/");
  expect(settled).toBe(0);
  await Promise.all(silent);
});

test("concurrent TLS handshakes are limited, and silent ones lose their slots", async () => {
  let connections = 0;
  const server = createServer(() => {
    connections += 1;
  });
  const port = await listen(server);
  const calledOff = new AbortController();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  open.push({ close: () => vi.useRealTimers() });
  const fetch = makeFetch();
  const sending = Array.from({ length: 150 }, () =>
    fetch.send(`https://fixture:${port}/`, get({ signal: calledOff.signal })),
  );
  const ended = Promise.allSettled(sending);
  for (const count of [64, 128, 150]) {
    await expect.poll(() => connections, { timeout: 20_000 }).toBe(count);
    await vi.advanceTimersByTimeAsync(300);
  }
  calledOff.abort(new Error("enough"));
  await ended;
});

test("the total of idle connections is limited", async () => {
  const sockets = new Set<unknown>();
  const server = http.createServer((_request, response) => void response.end("here"));
  server.on("connection", (socket) => void sockets.add(socket.once("close", () => sockets.delete(socket))));
  const port = await listen(server);
  const fetch = makeFetch({ resolve: async () => [here] });
  const hosts = Array.from({ length: 150 }, (_, index) => `http://host-${index}.example:${port}/`);
  await Promise.all(hosts.map(async (url) => text((await fetch.send(url, get())).body)));
  await expect.poll(() => sockets.size).toBe(128);
});

test("a host and port named by the operator is reached without TLS at any port, unlike its neighbours", async () => {
  const port = await listen(http.createServer((_request, response) => void response.end("plain")));
  const fetch = makeFetch({ allow: [`fixture:${port}`] });
  expect(await text((await fetch.send(`http://fixture:${port}/`, get())).body)).toBe("plain");
  await expect(fetch.send(`http://127.0.0.1:${port}/`, get())).rejects.toMatchObject({ reason: "address_not_allowed" });
  await expect(makeFetch({ allow: ["fixture:25"] }).check("http://fixture:25/")).resolves.toBeUndefined();
});

test("a request sends its headers and body, and connections are reused", async () => {
  const { url, connections } = await serve(async (request, response) => {
    const { host, ...headers } = request.headers;
    response.end(
      JSON.stringify({ host, ...headers, method: request.method, path: request.url, body: await text(request) }),
    );
  });
  const fetch = makeFetch();
  const headers = { "content-type": "application/json", host: "elsewhere", "accept-encoding": "gzip" };
  const { body } = await fetch.send(`${url}/hook?a=1#fragment`, get({ method: "POST", headers, body: "{}" }));
  expect(JSON.parse(await text(body))).toMatchObject({
    method: "POST",
    path: "/hook?a=1",
    host: new URL(url).host,
    "accept-encoding": "identity",
    "content-type": "application/json",
    "content-length": "2",
    body: "{}",
  });
  await setImmediate();
  async function* parts() {
    yield Buffer.from("one ");
    yield Buffer.from("two");
  }
  const streamed = await fetch.send(url, get({ method: "POST", body: parts() }));
  expect(JSON.parse(await text(streamed.body))).toMatchObject({ "transfer-encoding": "chunked", body: "one two" });
  expect(connections()).toBe(1);
});

test("an error thrown by a request body ends the request and is rethrown", async () => {
  const { url } = await serve((request) => void request.resume());
  const mine = new Error("the sender's own");
  // biome-ignore lint/correctness/useYield: it throws before its first part.
  async function* broken(): AsyncGenerator<Uint8Array> {
    throw mine;
  }
  await expect(makeFetch().send(url, get({ method: "POST", body: broken() }))).rejects.toBe(mine);
});

test("a response is streamed, and redirects are not followed", async () => {
  const read = Promise.withResolvers<void>();
  const { url } = await serve(async (_request, response) => {
    response.writeHead(302, { location: "https://private.example/" }).write("first");
    await read.promise;
    response.end("second");
  });
  const { status, headers, body } = await makeFetch().send(url, get());
  expect([status, headers.location]).toEqual([302, "https://private.example/"]);
  expect(Buffer.from((await body.next()).value ?? "").toString()).toBe("first");
  read.resolve();
  expect(await text(body)).toBe("second");
});

test("no more bytes are read than requested", async () => {
  const closed = Promise.withResolvers<void>();
  const { url } = await serve((_request, response) => {
    response.once("close", closed.resolve).write("x".repeat(1_001));
  });
  const { body } = await makeFetch().send(url, get());
  await expect(text(body)).rejects.toMatchObject({ reason: "too_large" });
  await closed.promise;
});

test("each phase of a request has a timeout", async () => {
  const silentPort = await listen(createServer(() => undefined));
  const fetch = makeFetch();
  const late = (message: string) => ({ reason: "timeout", message: expect.stringContaining(message) });
  await expect(fetch.send(`https://fixture:${silentPort}/`, get(within({ connect: 50 })))).rejects.toMatchObject(
    late("did not accept a connection within 0.05 s"),
  );
  const mute = await serve(() => undefined);
  await expect(fetch.send(mute.url, get(within({ head: 50 })))).rejects.toMatchObject(late("did not respond"));
  await expect(fetch.send(mute.url, get(within({ whole: 50 })))).rejects.toMatchObject(late("did not finish"));
  const stuck = await serve((_request, response) => void response.write("first"));
  const { body } = await fetch.send(stuck.url, get(within({ silence: 50 })));
  await expect(text(body)).rejects.toMatchObject(late("stopped responding"));
  // During the response, unless a busy machine delays the response.
  const endless = fetch.send(stuck.url, get(within({ whole: 1_000 })));
  await expect(endless.then(({ body }) => text(body))).rejects.toMatchObject(late("did not finish"));
});

test("an aborted request ends with the abort reason before and during its response", async () => {
  const closed: Promise<unknown>[] = [];
  const { url } = await serve((request, response) => {
    closed.push(once(response, "close"));
    if (request.url === "/stuck") response.write("first");
  });
  const fetch = makeFetch();
  const before = new AbortController();
  const sending = fetch.send(url, get({ signal: before.signal }));
  await expect.poll(() => closed.length).toBe(1);
  before.abort(new Error("enough"));
  await expect(sending).rejects.toThrow("enough");
  const amid = new AbortController();
  const { body } = await fetch.send(`${url}/stuck`, get({ signal: amid.signal }));
  await body.next();
  amid.abort(new Error("enough of that"));
  await expect(body.next()).rejects.toThrow("enough of that");
  const { cancel } = await fetch.send(`${url}/stuck`, get());
  cancel();
  await Promise.all(closed);
  expect(closed).toHaveLength(3);
});

test("failures of the server are distinguished", async () => {
  const { url } = await serve((request, response) => {
    if (request.url === "/hang-up") request.socket.destroy();
    else response.writeHead(200, { "x-large": "x".repeat(20_000) }).end();
  });
  const untrusting = new SafeFetch({ allow: ["127.0.0.1"], resolve: async () => [here] });
  open.push({ close: () => untrusting[Symbol.dispose]() });
  await expect(untrusting.send(url, get())).rejects.toMatchObject({ reason: "tls" });
  const misnamed = makeFetch({ resolve: async () => [here] });
  await expect(misnamed.send(url.replace("fixture", "other"), get())).rejects.toMatchObject({ reason: "tls" });
  const fetch = makeFetch();
  await expect(fetch.send(`${url}/hang-up`, get())).rejects.toMatchObject({ reason: "connection_reset" });
  await expect(fetch.send(`${url}/large`, get())).rejects.toMatchObject({ reason: "too_large" });
  const babbler = await listen(createServer((socket) => void socket.on("error", () => undefined).end("220 mail\r\n")));
  await expect(fetch.send(`https://fixture:${babbler}/`, get())).rejects.toMatchObject({ reason: "tls" });
  await expect(fetch.send("https://127.0.0.1:1024/", get())).rejects.toMatchObject({ reason: "connection_refused" });
});
