import { gzipSync } from "node:zlib";
import { type Case, chunk, envelope, http1, latin1, type Random, webSocketFrame } from "./bytes.ts";
import { bearer, type CaseClass, type Facts, listed, upgrade } from "./http1-cases.ts";

const fin = 0x80;
const [continued, text, binary, close, ping, pong] = [0, 1, 2, 8, 9, 10];

/** Frames by name. Each list is sent after the handshake or in the same segment. */
const frames: Readonly<Record<string, readonly Buffer[]>> = {
  JSON: [webSocketFrame(fin | text, '{"id":"1"}')],
  "no JSON": [webSocketFrame(fin | text, "{")],
  "deep JSON": [webSocketFrame(fin | text, "[".repeat(60_000))],
  "odd ids": [webSocketFrame(fin | text, '{"id":"\\ud800","__proto__":{"x":1}}')],
  "a command": [webSocketFrame(fin | text, '{"id":1,"method":"Target.getTargets"}')],
  "a command without method": [webSocketFrame(fin | text, '{"id":1.5,"method":{},"sessionId":"x"}')],
  "an envelope cut": [webSocketFrame(fin | text, '{"id":1,"method":"')],
  binary: [webSocketFrame(fin | binary, "abc")],
  unmasked: [webSocketFrame(fin | text, "{}", { unmasked: true })],
  RSV1: [webSocketFrame(fin | 0x40 | text, "{}")],
  "RSV2 and RSV3": [webSocketFrame(fin | 0x30 | text, "{}")],
  "opcode 3": [webSocketFrame(fin | 3, "{}")],
  "opcode 15": [webSocketFrame(fin | 15, "{}")],
  "huge length": [webSocketFrame(fin | text, "{}", { length: 2n ** 64n - 1n })],
  "length of 2^53": [webSocketFrame(fin | text, "{}", { length: 2n ** 53n })],
  "length of 4 GiB": [webSocketFrame(fin | binary, "{}", { length: 2n ** 32n })],
  "length of 101 MiB": [webSocketFrame(fin | text, "{}", { length: 101n * 2n ** 20n })],
  "short length in 64 bits": [webSocketFrame(fin | text, "{}", { length: 2n })],
  "fragmented ping": [webSocketFrame(ping, "a"), webSocketFrame(fin | continued, "b")],
  "long ping": [webSocketFrame(fin | ping, Buffer.alloc(126))],
  "pings and pongs": Array.from({ length: 100 }, (_, index) => webSocketFrame(fin | (index % 2 ? ping : pong), "x")),
  "continuation without start": [webSocketFrame(fin | continued, "{}")],
  "text inside text": [webSocketFrame(text, "{"), webSocketFrame(fin | text, "}")],
  "empty fragments": [webSocketFrame(text, ""), ...Array.from({ length: 200 }, () => webSocketFrame(continued, ""))],
  "no UTF-8": [webSocketFrame(fin | text, Buffer.from([0xff, 0xfe]))],
  "UTF-8 cut by fragments": [
    webSocketFrame(text, Buffer.from([0x22, 0xf0, 0x9f])),
    webSocketFrame(fin | continued, Buffer.from([0x98])),
  ],
  end: [webSocketFrame(fin | text, '{"end":true}')],
  "close without code": [webSocketFrame(fin | close, "")],
  "close of 1 byte": [webSocketFrame(fin | close, "\x03")],
  "close with odd reason": [webSocketFrame(fin | close, Buffer.from([0x03, 0xe8, 0xff]))],
  "close, then more": [webSocketFrame(fin | close, Buffer.from([0x03, 0xe8])), webSocketFrame(fin | text, "{}")],
  ...Object.fromEntries(
    [0, 999, 1000, 1004, 1005, 1006, 1011, 1015, 2999, 3000, 4999, 5000, 65_535].map((code) => [
      `close of ${code}`,
      [webSocketFrame(fin | close, Buffer.from([code >> 8, code & 255]))],
    ]),
  ),
  "one bit": [Buffer.from([fin | text])],
  "cut length": [Buffer.from([fin | text, 0xfe, 1])],
  "cut mask": [Buffer.from([fin | text, 0x85, 1, 2])],
  "HTTP again": [http1("GET /v1/status HTTP/1.1", ["Host: localhost"])],
};

function handshakes(facts: Facts): Readonly<Record<string, Buffer>> {
  const session = `/v1/sessions/${facts.session}`;
  return {
    drive: upgrade(`${session}/drive`, bearer(facts)),
    cdp: upgrade(`${session}/cdp`, bearer(facts)),
    live: upgrade(`/v1/live?session_id=${facts.session}`, bearer(facts)),
    "drive with extensions": upgrade(`${session}/drive`, bearer(facts), "Sec-WebSocket-Extensions: permessage-deflate"),
    stranger: upgrade(`${session}/drive`),
  };
}

/** Bodies of Connect and gRPC-Web by name. */
const bodies: Readonly<Record<string, Buffer>> = {
  nothing: latin1(""),
  "a message": envelope(0, "{}"),
  "two messages": Buffer.concat([envelope(0, "{}"), envelope(0, "{}")]),
  "end of stream": Buffer.concat([envelope(0, "{}"), envelope(2, "{}")]),
  "end of stream alone": envelope(2, '{"metadata":{"\xff":1}}'),
  "trailers of gRPC-Web": envelope(0x80, "grpc-status: \xff\r\n"),
  "compressed without encoding": envelope(1, gzipSync("{}")),
  "compressed garbage": envelope(1, "abc"),
  "all flags": envelope(0xff, "{}"),
  "cut prefix": latin1("\0\0"),
  "cut message": envelope(0, "{", 9),
  "huge length": envelope(0, "{}", 0xffffffff),
  "length of 101 MiB": envelope(0, "{}", 101 * 2 ** 20),
  "no JSON": envelope(0, "{\xff"),
  "deep JSON": envelope(0, "[".repeat(50_000)),
  base64: latin1(envelope(0, "").toString("base64")),
  "broken base64": latin1("AAA=AA$"),
  plain: latin1("{}"),
};

const calls = listed(
  "StatusService/Get | StatusService/Watch | SessionService/Drive | SessionService/Cdp | SessionService/Capture | LiveService/Join",
);
const types = listed(`
  application/json | application/proto | application/connect+json | application/connect+proto | application/grpc
  application/grpc-web | application/grpc-web+json | application/grpc-web-text | application/grpc-web-text+proto | x/y`);
const encodings = listed(`
  Connect-Content-Encoding: gzip | Content-Encoding: gzip | Grpc-Encoding: gzip | Connect-Content-Encoding: \xff | X: y | X: z`);

function connectCase(random: Random, facts: Facts, name: string, body: Buffer): Case {
  const [method, type] = [random.pick(calls), random.pick(types)];
  const lines = [
    "Host: localhost",
    `Content-Type: ${type}`,
    random.pick(encodings),
    ...(random.below(2) ? [bearer(facts)] : []),
  ];
  const line = `POST /pilothouse.v1.${method} HTTP/1.1`;
  const steps =
    random.below(2) === 0
      ? [http1(line, [...lines, `Content-Length: ${body.length}`], body)]
      : [
          http1(line, [...lines, "Transfer-Encoding: chunked"]),
          random.below(3),
          chunk(body),
          ...(random.below(2) ? [latin1("0\r\n\r\n")] : []),
        ];
  return {
    name: `${method} as ${type} of ${name}`,
    steps: [...steps, random.below(8)],
    leave: random.pick(["wait", "end", "reset"]),
  };
}

/** Classes of HTTP/1.1 stream cases: WebSocket, Connect and gRPC-Web. */
export const streamClasses: Readonly<Record<string, CaseClass>> = {
  WebSocket: (_random, facts) =>
    Object.entries(handshakes(facts)).flatMap(([entryPoint, handshake]) =>
      Object.entries(frames).flatMap(([name, list]) => [
        { name: `${entryPoint}: ${name}`, steps: [handshake, "answer" as const, ...list], leave: "wait" as const },
        {
          name: `${entryPoint}: ${name}, in the handshake's segment`,
          steps: [handshake, ...list],
          leave: "wait" as const,
        },
        {
          name: `${entryPoint}: ${name}, gone`,
          steps: [handshake, "answer" as const, ...list],
          leave: "reset" as const,
        },
      ]),
    ),
  "Connect messages": (random, facts) =>
    Object.entries(bodies).flatMap(([name, body]) =>
      Array.from({ length: 6 }, () => connectCase(random, facts, name, body)),
    ),
};
