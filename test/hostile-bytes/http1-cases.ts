import { gzipSync } from "node:zlib";
import { type Case, chunk, envelope, http1, latin1, type Random, type Step } from "./bytes.ts";

/** Values in the cases: an existing key and session, and the site behind the relay. */
export interface Facts {
  readonly key: string;
  readonly session: string;
  /** `host:port` of the site that a relay reaches. */
  readonly site: string;
  readonly clientHello: Buffer;
}

/** Returns the cases of one class. */
export type CaseClass = (random: Random, facts: Facts) => Case[];

const host = "Host: localhost";

/** Splits a list at `|` and at line ends. */
export const listed = (text: string): string[] => text.trim().split(/ \| |(?<!\r)\n */);

export const oddHosts = [
  ...listed(`
    localhost:99999 | localhost:-1 | localhost: | :80 | [::1 | [::1]:99999 | [ | ] | @ | a@localhost | localhost/ | localhost?
    localhost# | % | %00 | %zz | localhost%2f | a b | \xff\xfe | 127.0.0.1. | 0x7f.1 | 1.2.3.4.5 | xn--a | localhost, localhost
    http://localhost | 127.1.2.3:080 | localhost:8e1 | ::1 | [::ffff:1.2.3.4%25lo]`),
  "",
  " ",
  "a\tb",
  "\\",
  "a".repeat(300),
];

export const oddPaths = [
  ...listed(`
    * | / | // | //evil/v1/status | /% | /%00 | /%zz | /%ff | /v1/%2e%2e/status | /v1/sessions/%2f | /? | /v1/status?a=%
    /v1/status?a[]=1&a[b]=2&__proto__=3 | /v1/status#x | /v1/sessions/\xe9 | /v1/sessions//state | http://localhost/v1/status
    http://localhost:99999/v1/status | http://[/v1/status | https://x@y:z/ | x: | localhost:80 | /constructor | /__proto__
    /pilothouse.v1.StatusService/Get?% | //pilothouse.v1.StatusService/Get | /pilothouse.v1.StatusService/%47et
    /v1/sessions/__proto__ | /v1/sessions/ses_%F0%9F%98%80 | /v1/status/subscribe/confirm?token=%00 | /metrics?% | ?`),
  "",
  "\\v1\\status",
  `/${"a".repeat(9_000)}`,
  `/v1/status?${"a=1&".repeat(3_000)}`,
];

const oddHeaders = [
  ...listed(`
    Content-Length: -1 | Content-Length: 1, 1 | Content-Length: 0x1 | Content-Length: | Content-Length: 99999999999999999999
    Content-Length: 5\r\nContent-Length: 6 | Content-Length: 4\r\nTransfer-Encoding: chunked | Transfer-Encoding: identity
    Transfer-Encoding: gzip, chunked | Transfer-Encoding: chunked, chunked | Transfer-Encoding: chunked\r\nTransfer-Encoding: x
    Transfer-Encoding : chunked | Transfer-Encoding: \x0bchunked | TE: trailers | TE: gzip;q=2 | Expect: 100-continue | Expect:
    Expect: 200-ok | Expect: 100-continue, x | Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk
    Upgrade: websocket | Upgrade: websocket\r\nConnection: Upgrade | Upgrade:\r\nConnection: upgrade | Connection: close, x, \xff
    X-Request-Id: \xff | X-Request-Id: | X-Forwarded-For: \xff,,,:: | X: \0 | X: a\rb | X\0: a | : a | X
    Authorization: Bearer | Authorization: \xff | Authorization: Basic ==== | Cookie: a=\xff;;= | Origin: null | Origin: http://[
    Access-Control-Request-Method: \xff\r\nOrigin: http://localhost | Last-Event-ID: \xff | Idempotency-Key: \xff
    X-Timeout-Ms: 1 | Connect-Timeout-Ms: 1 | Connect-Timeout-Ms: -1 | Connect-Protocol-Version: 9 | Grpc-Timeout: 1n
    Content-Type: \xff | Content-Type: application/json; charset=\xff | Content-Type: multipart/form-data; boundary=
    Content-Encoding: gzip | Content-Encoding: \xff | Accept: \xff | __proto__: x | constructor: x | Range: bytes=-1
    Host: localhost\r\nHost: evil | Host: \xff | Trailer: Content-Length | Keep-Alive: timeout=-1 | Proxy-Connection: x
    Forwarded: for=\xff | If-None-Match: \xff | X-Forwarded-Host: [ | Sec-WebSocket-Protocol: bearer.\xff, ,`),
  "X: a\nb",
  " X: a",
  `X: ${"a".repeat(20_000)}`,
  "A: b\r\n".repeat(3_000),
];

const oddLines = listed(`
  GET | GET / | GET / HTTP/0.9 | GET / HTTP/1.0 | GET / HTTP/2.0 | GET / HTTP/9.9 | GET / http/1.1 | GET  / HTTP/1.1
  \r\n\r\nGET / HTTP/1.1 | get /v1/status HTTP/1.1 | \xff / HTTP/1.1 | M-SEARCH * HTTP/1.1 | PRI / HTTP/1.1 | PRI * HTTP/1.1
  CONNECT localhost:80 HTTP/1.1 | CONNECT / HTTP/1.1 | CONNECT * HTTP/1.1 | OPTIONS * HTTP/1.1 | TRACE / HTTP/1.1
  QUERY / HTTP/1.1 | SOURCE / ICE/1.0 | DESCRIBE / RTSP/1.0 | HTTP/1.1 200 OK | PUT /v1/sessions/x/files/a HTTP/1.1
  DELETE / HTTP/1.1 | P | PR | PRI`);

const bodies = [
  ...listed(`
    1\r\na\r\n0\r\n\r\n | 1\r\na | Z\r\n | -1\r\n | 1;x=y\r\na\r\n0\r\nX: y\r\n\r\n | 0\r\n | FFFFFFFFFFFFFFFFF\r\n
    0\r\nContent-Length: 5\r\n\r\n | 5\r\nab\r\n | 0\r\n\xff: \0\r\n\r\n | 2\r\n{}\r\n0\r\n\r\n`),
  "",
  "1\na\n0\n\n",
  "\r\n",
  `1;${"x".repeat(20_000)}\r\na\r\n0\r\n\r\n`,
];

const webSocketKey =
  "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
const json = "Content-Type: application/json";
const chunked = "Transfer-Encoding: chunked";

export function upgrade(path: string, ...headers: readonly string[]): Buffer {
  return http1(`GET ${path} HTTP/1.1`, [host, webSocketKey, ...headers]);
}

export const bearer = ({ key }: Facts): string => `Authorization: Bearer ${key}`;

/** Requests of every kind by name. Some are complete, some have an unfinished body or a streamed response. */
function requests(facts: Facts): Readonly<Record<string, Buffer>> {
  const key = bearer(facts);
  const session = `/v1/sessions/${facts.session}`;
  const post = (path: string, headers: readonly string[], body: string | Buffer): Buffer =>
    http1(`POST ${path} HTTP/1.1`, [host, ...headers, `Content-Length: ${body.length}`], body);
  const rpc = (method: string, type: string, body: Buffer, ...headers: readonly string[]): Buffer =>
    http1(`POST /pilothouse.v1.${method} HTTP/1.1`, [host, `Content-Type: ${type}`, chunked, ...headers], body);
  const empty = envelope(0, "{}");
  return {
    get: http1("GET /v1/status HTTP/1.1", [host]),
    list: http1("GET /v1/sessions HTTP/1.1", [host, key]),
    head: http1("HEAD /v1/status/stream HTTP/1.1", [host]),
    preflight: http1("OPTIONS /v1/sessions HTTP/1.1", [
      host,
      "Origin: http://localhost",
      "Access-Control-Request-Method: POST",
    ]),
    post: post(`${session}/observe`, [key, json], "{}"),
    "post unfinished": http1(`POST ${session}/observe HTTP/1.1`, [host, key, json, chunked], "1\r\n{\r\n"),
    "post without key": post("/v1/sessions", [json], "{}"),
    login: post("/v1/auth/login", [json], '{"email":"a@example.com","password":"\\ud800"}'),
    form: post("/v1/oauth/token", ["Content-Type: application/x-www-form-urlencoded"], "grant_type=%zz&a=%00&=&&"),
    expect: http1(`POST ${session}/observe HTTP/1.1`, [host, key, json, "Content-Length: 2", "Expect: 100-continue"]),
    "status stream": http1("GET /v1/status/stream HTTP/1.1", [host]),
    "account stream": http1("GET /v1/events/stream HTTP/1.1", [host, key]),
    "session stream": http1(`GET ${session}/events HTTP/1.1`, [host, key]),
    export: http1("GET /v1/account/audit-log/export HTTP/1.1", [host, key]),
    capture: post(`${session}/capture`, [key, json], '{"kind":"screenshot"}'),
    docs: http1("GET /docs HTTP/1.1", [host, "Accept-Encoding: gzip, br"]),
    metrics: http1("GET /metrics HTTP/1.1", [host]),
    upload: http1(`PUT ${session}/files/a.bin HTTP/1.1`, [host, key, "Content-Length: 5"], "abcde"),
    "upload unfinished": http1(
      `PUT ${session}/files/b HTTP/1.1`,
      [host, key, chunked, "Content-Type: multipart/form-data; boundary=x"],
      "3\r\n--x",
    ),
    "upload without key": http1(`PUT ${session}/files/b HTTP/1.1`, [host, "Content-Length: 99"], "abc"),
    "connect unary": post("/pilothouse.v1.StatusService/Get", [json], "{}"),
    "connect get": http1(
      "GET /pilothouse.v1.StatusService/Get?connect=v1&encoding=json&message=%7B%7D&base64=1 HTTP/1.1",
      [host],
    ),
    "connect gzip": post("/pilothouse.v1.StatusService/Get", [json, "Content-Encoding: gzip"], gzipSync("{}")),
    "connect bad gzip": post("/pilothouse.v1.StatusService/Get", [json, "Content-Encoding: gzip"], "{}"),
    "connect watch": rpc(
      "StatusService/Watch",
      "application/connect+json",
      Buffer.concat([chunk(empty), latin1("0\r\n\r\n")]),
    ),
    "connect watch unfinished": rpc("StatusService/Watch", "application/connect+json", latin1("")),
    "connect drive": rpc("SessionService/Drive", "application/connect+json", latin1(""), key),
    "connect drive without key": rpc("SessionService/Drive", "application/connect+json", latin1("")),
    "connect unfinished": rpc("SessionService/Get", "application/json", latin1("1\r\n{\r\n"), key),
    "grpc-web": rpc(
      "StatusService/Get",
      "application/grpc-web+proto",
      Buffer.concat([chunk(envelope(0, "")), latin1("0\r\n\r\n")]),
    ),
    "grpc-web-text": rpc(
      "StatusService/Get",
      "application/grpc-web-text",
      Buffer.concat([chunk(latin1("AAAAAAA=")), latin1("0\r\n\r\n")]),
    ),
    "grpc over http/1.1": rpc(
      "StatusService/Get",
      "application/grpc",
      Buffer.concat([chunk(envelope(0, "")), latin1("0\r\n\r\n")]),
    ),
    "upgrade drive": upgrade(`${session}/drive`, key),
    "upgrade cdp": upgrade(`${session}/cdp`, key),
    "upgrade live": upgrade("/v1/live", key),
    "upgrade without key": upgrade(`${session}/drive`),
    "upgrade nowhere": upgrade("/v1/nothing"),
    "upgrade version": upgrade(`${session}/drive`, key, "Sec-WebSocket-Version: 9"),
    "upgrade with body": upgrade(`${session}/drive`, key, "Content-Length: 3"),
    "upgrade with extensions": upgrade(`${session}/drive`, key, "Sec-WebSocket-Extensions: permessage-deflate; \xff="),
    "upgrade with protocols": upgrade(`${session}/drive`, key, "Sec-WebSocket-Protocol: a,a, ,\xff"),
  };
}

const leaves = ["wait", "end", "reset"] as const;
const one = (name: string, ...steps: readonly Step[]): Case => ({ name, steps, leave: "wait" });

export const http1Classes: Readonly<Record<string, CaseClass>> = {
  hosts: (_random, facts) =>
    oddHosts.flatMap((odd) => [
      one(`GET of host ${odd}`, http1("GET /v1/status HTTP/1.1", [`Host: ${odd}`])),
      one(
        `Connect call of host ${odd}`,
        http1("POST /pilothouse.v1.StatusService/Get HTTP/1.1", [`Host: ${odd}`, json, "Content-Length: 2"], "{}"),
      ),
      one(
        `upgrade of host ${odd}`,
        http1(`GET /v1/sessions/${facts.session}/drive HTTP/1.1`, [`Host: ${odd}`, webSocketKey, bearer(facts)]),
      ),
    ]),
  paths: (_random, facts) =>
    oddPaths.flatMap((path) => [
      one(`GET ${path}`, http1(`GET ${path} HTTP/1.1`, [host, bearer(facts)])),
      one(`POST ${path}`, http1(`POST ${path} HTTP/1.1`, [host, json, "Content-Length: 2"], "{}")),
      one(`CONNECT ${path}`, http1(`CONNECT ${path} HTTP/1.1`, [host])),
      one(`upgrade of ${path}`, upgrade(path, bearer(facts))),
    ]),
  headers: (random, facts) =>
    oddHeaders.flatMap((header) => [
      one(`GET with ${header}`, http1("GET /v1/status HTTP/1.1", [host, header])),
      one(
        `Connect call with ${header}`,
        http1("POST /pilothouse.v1.StatusService/Get HTTP/1.1", [host, json, header], random.pick(bodies)),
      ),
      one(
        `POST with ${header}`,
        http1(
          `POST /v1/sessions/${facts.session}/observe HTTP/1.1`,
          [host, bearer(facts), json, header],
          random.pick(bodies),
        ),
      ),
      one(`upgrade with ${header}`, upgrade(`/v1/sessions/${facts.session}/drive`, bearer(facts), header)),
    ]),
  lines: () => oddLines.map((line) => one(line, http1(line, [host]))),
  "chunked bodies": (_random, facts) =>
    bodies.flatMap((body) => [
      one(
        `POST of ${body}`,
        http1(`POST /v1/sessions/${facts.session}/observe HTTP/1.1`, [host, bearer(facts), json, chunked], body),
      ),
      one(
        `PUT of ${body}`,
        http1(`PUT /v1/sessions/${facts.session}/files/c HTTP/1.1`, [host, bearer(facts), chunked], body),
      ),
      one(
        `Connect stream of ${body}`,
        http1(
          "POST /pilothouse.v1.SessionService/Drive HTTP/1.1",
          [host, bearer(facts), "Content-Type: application/connect+json", chunked],
          body,
        ),
      ),
    ]),
  "lost resources": (_random, facts) => {
    const cdp = `/v1/sessions/${facts.session}/cdp`;
    const proto = ["Host: localhost", "Content-Type: application/proto", "Content-Length: 1"];
    return [
      { name: "cdp that is gone", steps: [upgrade(cdp, bearer(facts)), 0], leave: "reset" },
      one("cdp with odd protocols", upgrade(cdp, bearer(facts), "Sec-WebSocket-Protocol: a,a, ,\xff")),
      one("connect unary of no protobuf", http1("POST /pilothouse.v1.StatusService/Get HTTP/1.1", proto, "\xff")),
    ];
  },
  "cut off": (_random, facts) =>
    Object.entries(requests(facts)).map(([name, request]) => ({
      name: `${name} cut off in its body`,
      steps: [request.subarray(0, -1), 5],
      leave: "reset",
    })),
  "first bytes": () =>
    ["P", "PR", "PRI", "PRI ", "PO", "G", "\r", "\r\n", "\0", "\x16", "\xff", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r"].flatMap(
      (bytes) =>
        leaves.map((leave) => ({ name: `${JSON.stringify(bytes)}, then ${leave}`, steps: [latin1(bytes), 5], leave })),
    ),
  pipelines(random, facts) {
    const all = Object.entries(requests(facts));
    return all.flatMap(([first, before]) =>
      all.flatMap(([second, after]) => ({
        name: `${second} behind ${first}`,
        steps: [before, ...(random.below(3) === 0 ? [1] : []), after, random.below(12)],
        leave: random.pick(leaves),
      })),
    );
  },
};
