import { gzipSync } from "node:zlib";
import { type Case, envelope, type Fields, frame, hpack, latin1, type Random, type Step, uint32 } from "./bytes.ts";
import { type CaseClass, type Facts, listed, oddHosts, oddPaths } from "./http1-cases.ts";

const frameTypes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] as const;
const [data, headers, priority, reset, settings, push, ping, goAway, window, continuation] = frameTypes;
const endStream = 1;
const endHeaders = 4;
const padded = 8;
const hasPriority = 32;

/** Preface and settings of an HTTP/2 connection. */
const opening = Buffer.concat([latin1("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(settings, 0, 0)]);

const fields = (method: string, path: string, ...more: Fields): Fields => [
  [":method", method],
  [":scheme", "http"],
  [":path", path],
  [":authority", "localhost"],
  ...more,
];

const call = (path: string, type = "application/grpc", ...more: Fields): Fields =>
  fields("POST", path, ["content-type", type], ["te", "trailers"], ...more);

const open = (id: number, list: Fields, flags = endHeaders): Buffer => frame(headers, flags, id, hpack(list));
const whole = (id: number, list: Fields): Buffer => open(id, list, endHeaders | endStream);
const of = (name: string, steps: readonly Step[], leave: Case["leave"] = "wait"): Case => ({
  name,
  steps: [opening, ...steps],
  leave,
});

const statusGet = "/pilothouse.v1.StatusService/Get";
const drive = "/pilothouse.v1.SessionService/Drive";
/** Methods of every kind on public and fleet ports, and unknown ones. */
const methods = listed(`
  /pilothouse.v1.StatusService/Get | /pilothouse.v1.StatusService/Watch | /pilothouse.v1.SessionService/Drive
  /pilothouse.v1.SessionService/Cdp | /pilothouse.v1.LiveService/Join | /pilothouse.fleet.v1.ControlService/Register
  /pilothouse.fleet.v1.ControlService/Heartbeat | /pilothouse.fleet.v1.WorkerService/Create
  /pilothouse.fleet.v1.WorkerService/ProxyCdp | /pilothouse.fleet.v1.WorkerService/PutFile
  /pilothouse.fleet.v1.WorkerService/GetFile | /grpc.health.v1.Health/Check | /grpc.health.v1.Health/Watch | /unknown | /x/y/z
  /grpc.reflection.v1.ServerReflection/ServerReflectionInfo | /grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo`);

const contentTypes = listed(
  "application/grpc | text/plain | application/grpc-web-text | application/json | application/connect+proto | \xff",
);

/** Frames that end a stream or its connection in the same segment as the headers. */
function endings(list: Fields): Readonly<Record<string, readonly Buffer[]>> {
  const [half, all] = [open(1, list), whole(1, list)];
  return {
    none: [half],
    twice: [all, frame(data, endStream, 1, latin1("{}"))],
    rst: [half, frame(reset, 0, 1, uint32(8))],
    rstend: [all, frame(reset, 0, 1, uint32(8))],
    win: [all, frame(window, 0, 1, uint32(0x7fffffff))],
    goaway: [all, frame(goAway, 0, 0, Buffer.concat([uint32(1), uint32(0)]))],
    badframe: [all, frame(ping, 0, 0, latin1("1"))],
    trailers: [half, frame(data, 0, 1, envelope(0, "")), open(1, [["x", "y"]], endHeaders | endStream)],
    "trailers with pseudo-headers": [half, open(1, [[":path", "/"]], endHeaders | endStream)],
    "trailers without end": [half, open(1, [["x", "y"]])],
    "headers twice": [half, half],
    "priority on itself": [half, frame(priority, 0, 1, Buffer.concat([uint32(1), Buffer.from([1])]))],
    "data too long": [half, frame(data, 0, 1, Buffer.alloc(16_385))],
    "window by zero": [half, frame(window, 0, 1, uint32(0))],
    "settings of another size": [half, frame(settings, 0, 0, Buffer.concat([Buffer.from([0, 4]), uint32(0xffffffff)]))],
  };
}

/** Invalid or unusual field lists. */
function oddFields(): Readonly<Record<string, Fields>> {
  const [method, scheme, path, authority] = fields("GET", "/v1/status") as [Fields[0], Fields[0], Fields[0], Fields[0]];
  const get = [method, scheme, path, authority];
  const more = (...added: Fields): Fields => [...get, ...added];
  return {
    none: [],
    "no method": [scheme, path, authority],
    "no scheme": [method, path, authority],
    "no path": [method, scheme, authority],
    "no authority": [method, scheme, path],
    "host alone": [method, scheme, path, ["host", "localhost"]],
    "another host": more(["host", "evil:99999"]),
    "method twice": more(method),
    "path twice": more(path),
    "pseudo-header last": [["x", "y"], ...get],
    "unknown pseudo-header": more([":x", "y"]),
    status: more([":status", "200"]),
    "empty method": [[":method", ""], scheme, path, authority],
    "odd method": [[":method", "G\xffT"], scheme, path, authority],
    "method of spaces": [[":method", "GET / HTTP/1.1\r\n"], scheme, path, authority],
    "odd scheme": [method, [":scheme", "\xff"], path, authority],
    CONNECT: [[":method", "CONNECT"], authority],
    "CONNECT with path": [[":method", "CONNECT"], scheme, path, authority],
    "extended CONNECT": [
      [":method", "CONNECT"],
      [":protocol", "websocket"],
      scheme,
      path,
      authority,
      ["sec-websocket-version", "13"],
    ],
    "empty protocol": more([":protocol", ""]),
    connection: more(["connection", "close"]),
    upgrade: more(["upgrade", "websocket"], ["connection", "upgrade"]),
    "transfer-encoding": more(["transfer-encoding", "chunked"]),
    "te gzip": more(["te", "gzip"]),
    "upper case": more(["X-Y", "z"]),
    "empty name": more(["", "x"]),
    NUL: more(["x", "a\0b"]),
    "CR LF": more(["x", "a\r\nb: c"]),
    "8 bit": more(["x", "\xff"], ["authorization", "Bearer \xff"], ["cookie", "\xff"], ["x-request-id", "\xff"]),
    "leading space": more(["x", " a "]),
    "content-length negative": more(["content-length", "-1"]),
    "content-length twice": more(["content-length", "1"], ["content-length", "2"]),
    "content-length too small": [
      ...fields("POST", statusGet, ["content-type", "application/json"], ["content-length", "1"]),
    ],
    expect: more(["expect", "100-continue"]),
    "odd expect": more(["expect", "\xff"]),
    "expect on POST": fields("POST", statusGet, ["content-type", "application/json"], ["expect", "100-continue"]),
    "many cookies": more(...Array.from({ length: 100 }, (): Fields[0] => ["cookie", "a=b"])),
    "long value": more(["x", "a".repeat(15_000)]),
    prototype: more(["__proto__", "x"], ["constructor", "y"]),
    "grpc-timeout": call(statusGet, "application/grpc", ["grpc-timeout", "\xff"]),
    "grpc-timeout of nothing": call(drive, "application/grpc", ["grpc-timeout", "0n"]),
    "grpc-timeout of a nanosecond": call(drive, "application/grpc", ["grpc-timeout", "1n"]),
    "grpc-timeout too long": call(statusGet, "application/grpc", ["grpc-timeout", "99999999999H"]),
    "grpc-encoding": call(statusGet, "application/grpc", ["grpc-encoding", "\xff"], ["grpc-accept-encoding", ",,"]),
    "binary metadata": call(
      statusGet,
      "application/grpc",
      ["x-bin", "!!!"],
      ["grpc-status-details-bin", "%"],
      ["grpc-trace-bin", ""],
    ),
    "odd metadata": call(
      statusGet,
      "application/grpc",
      ["grpc-status", "x"],
      ["grpc-message", "%zz"],
      ["user-agent", "\xff"],
    ),
  };
}

const hpackFaults: Readonly<Record<string, number[]>> = {
  "index 0": [0x80],
  "index 61 beyond": [0xff, 0x7f],
  "endless integer": [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
  "table too large": [0x3f, 0xff, 0xff, 0xff, 0x0f],
  "table size behind a field": [0x82, 0x20],
  "table size twice": [0x20, 0x3f, 0xe1, 0x1f, 0x20, 0x82],
  "name cut off": [0x00, 0x05, 0x61],
  "value cut off": [0x00, 0x01, 0x61, 0x7f, 0xff],
  "Huffman of EOS": [0x00, 0x84, 0xff, 0xff, 0xff, 0xff, 0x00],
  "Huffman with long padding": [0x00, 0x82, 0x1f, 0xff, 0x00],
  "empty Huffman": [0x00, 0x80, 0x80],
  "dynamic entry": [0x40, 0x01, 0x61, 0x01, 0x62, 0xbe, 0xbf],
  "never indexed": [0x10, 0x01, 0x61, 0x01, 0x62, 0x82],
};

/** Messages of a gRPC stream, valid or not. */
const messages: Readonly<Record<string, Buffer>> = {
  empty: envelope(0, ""),
  "a field": envelope(0, Buffer.from([0x0a, 3, 97, 98, 99])),
  "no protobuf": envelope(0, "\xff\xff\xff"),
  "no UTF-8": envelope(0, Buffer.from([0x0a, 2, 0xff, 0xfe])),
  "deep groups": envelope(0, Buffer.alloc(2_000, 0x0b)),
  "compressed without encoding": envelope(1, gzipSync("")),
  "compressed garbage": envelope(1, "abc"),
  "end of stream": envelope(2, "{}"),
  "unknown flags": envelope(0xff, ""),
  "cut prefix": latin1("\0\0\0"),
  "cut message": envelope(0, "ab", 9),
  "huge length": envelope(0, "ab", 0xffffffff),
  two: Buffer.concat([envelope(0, ""), envelope(0, "")]),
  "beside itself": Buffer.concat([envelope(0, ""), latin1("\0")]),
};

const ids = [0, 1, 2, 3, 5, 101, 0x7fffffff, 0x80000001];

function randomFrame(random: Random): Buffer {
  const length = random.pick([0, 0, 1, 3, 4, 5, 6, 8, 12, 17, 100, 16_384]);
  const body = random.below(3) === 0 ? hpack(call(random.pick(methods))) : random.bytes(length);
  const declared = random.below(6) === 0 ? random.pick([0, 1, body.length + 1, 16_385, 0xffffff]) : undefined;
  return frame(random.below(14), random.pick([0, 0, 1, 4, 5, 8, 32, 44, 0xff]), random.pick(ids), body, declared);
}

function settingsOf(...pairs: readonly (readonly [id: number, value: number])[]): Buffer {
  return frame(
    settings,
    0,
    0,
    Buffer.concat(pairs.map(([id, value]) => Buffer.concat([Buffer.from([0, id]), uint32(value)]))),
  );
}

const many = (count: number, make: (index: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, index) => make(index)));

function floods({ key }: Facts): Case[] {
  const get = hpack(fields("GET", "/v1/status"));
  const stream = fields("GET", "/v1/status/stream");
  const list = fields("GET", "/v1/sessions", ["authorization", `Bearer ${key}`]);
  const resets = (count: number, made: Fields): Buffer =>
    many(count, (index) => Buffer.concat([whole(2 * index + 1, made), frame(reset, 0, 2 * index + 1, uint32(8))]));
  return [
    of("20 status streams reset at once", [resets(20, stream)], "reset"),
    of("100 calls reset at once", [resets(100, call(drive, "application/grpc", ["authorization", `Bearer ${key}`]))]),
    of("300 streams", [many(300, (index) => whole(2 * index + 1, stream)), 5], "reset"),
    of("continuations", [
      frame(headers, 0, 1, get.subarray(0, 2)),
      many(300, () => frame(continuation, 0, 1, [0, 1, 97, 1, 98])),
    ]),
    of("empty continuations", [frame(headers, 0, 1, get), many(300, () => frame(continuation, 0, 1))]),
    of("a frame between continuations", [frame(headers, 0, 1, get), frame(ping, 0, 0, Buffer.alloc(8))]),
    of("a continuation alone", [frame(continuation, endHeaders, 1, get)]),
    of("pings", [many(300, () => frame(ping, 0, 0, Buffer.alloc(8)))]),
    of("settings", [many(300, () => settingsOf([4, 65_535]))]),
    of("priorities in a ring", [
      many(100, (index) =>
        frame(priority, 0, 2 * index + 1, Buffer.concat([uint32(2 * index + 3), Buffer.from([255])])),
      ),
      whole(201, list),
    ]),
    of("empty data", [open(1, call(statusGet)), many(300, () => frame(data, 0, 1))]),
    of(
      "a window of zero",
      [settingsOf([4, 0]), whole(1, fields("GET", "/docs")), whole(3, stream), whole(5, list), 10],
      "reset",
    ),
    of(
      "a window of zero, opened by bytes",
      [settingsOf([4, 0]), whole(1, fields("GET", "/docs")), 2, many(50, () => frame(window, 0, 1, uint32(1)))],
      "reset",
    ),
    of("the connection's window overflown", [whole(1, stream), frame(window, 0, 0, uint32(0x7fffffff))]),
    of("settings acknowledged unasked", [many(50, () => frame(settings, 1, 0)), whole(1, list)]),
    of("an acknowledgement with content", [frame(settings, 1, 0, Buffer.alloc(6))]),
    of(
      "GOAWAY, then no HTTP/2",
      [whole(1, stream), 5, frame(goAway, 0, 0, Buffer.alloc(8)), 1, latin1("GET / HTTP/1.1")],
      "reset",
    ),
    of("GOAWAY, then requests", [frame(goAway, 0, 0, Buffer.alloc(8)), whole(1, list), whole(3, stream)]),
    of("streams that go backwards", [whole(9, list), whole(3, list), whole(9, list)]),
    of("PUSH_PROMISE", [frame(push, endHeaders, 1, Buffer.concat([uint32(2), get]))]),
  ];
}

function paddings(): Case[] {
  const block = hpack(fields("GET", "/v1/status"));
  const lengths = [0, 1, 10, block.length, 255];
  return lengths.flatMap((length) => [
    of(`headers padded by ${length}`, [
      frame(headers, endHeaders | endStream | padded, 1, Buffer.concat([Buffer.from([length]), block])),
    ]),
    of(`data padded by ${length}`, [
      open(1, call(statusGet)),
      frame(data, endStream | padded, 1, Buffer.concat([Buffer.from([length]), envelope(0, "")])),
    ]),
    of(`headers with priority on ${length}`, [
      frame(headers, endHeaders | endStream | hasPriority, 1, Buffer.concat([uint32(length), Buffer.from([9]), block])),
    ]),
  ]);
}

/** Streams and unfinished requests that the client resets while they are open. */
function resetInFlight(random: Random, { key, session }: Facts): Case[] {
  const bearer = ["authorization", `Bearer ${key}`] as const;
  const type = ["content-type", "application/json"] as const;
  const gets = [
    "/v1/status/stream",
    "/v1/events/stream",
    "/v1/account/audit-log/export",
    `/v1/sessions/${session}/events`,
    `/v1/sessions/${session}/files/honest`,
  ];
  const posts = [`/v1/sessions/${session}/capture`, `/v1/sessions/${session}/observe`, "/v1/sessions", statusGet];
  const connect = [
    drive,
    "/pilothouse.v1.SessionService/CaptureStream",
    "/pilothouse.v1.StatusService/Watch",
    "/pilothouse.v1.LiveService/Join",
  ];
  const begun = [
    ...gets.map((path) => [path, [whole(1, fields("GET", path, bearer))]] as const),
    ...posts.map(
      (path) =>
        [
          path,
          [open(1, fields("POST", path, bearer, type)), frame(data, endStream, 1, latin1('{"kind":"screenshot"}'))],
        ] as const,
    ),
    ...posts.map(
      (path) =>
        [`${path} without end`, [open(1, fields("POST", path, bearer, type)), frame(data, 0, 1, latin1("{"))]] as const,
    ),
    ...[...connect, ...methods].flatMap((path) =>
      ["application/grpc", "application/connect+proto", "application/grpc-web"].map(
        (kind) =>
          [
            `${path} as ${kind}`,
            [open(1, call(path, kind, bearer)), frame(data, random.below(2), 1, envelope(0, ""))],
          ] as const,
      ),
    ),
  ];
  const ends = [frame(reset, 0, 1, uint32(8)), frame(goAway, 0, 0, Buffer.alloc(8)), frame(ping, 0, 0)];
  return begun.flatMap(([name, frames]) =>
    [0, 1, 3, 10].map((ms) =>
      of(`${name}, reset after ${ms} ms`, [...frames, ms, random.pick(ends), 1], random.pick(["wait", "reset"])),
    ),
  );
}

export const http2Classes: Readonly<Record<string, CaseClass>> = {
  "streams that end at once": () =>
    [...methods, "/v1/status/stream", "/v1/events/stream", "/docs"].flatMap((path) =>
      contentTypes.flatMap((type) =>
        Object.entries(endings(call(path, type))).flatMap(([ending, frames]) => [
          of(`${ending} ${path} of ${type}`, frames),
          of(`${ending} ${path} of ${type}, gone`, frames, "reset"),
        ]),
      ),
    ),
  "odd fields": (random) =>
    Object.entries(oddFields()).flatMap(([name, list]) => [
      of(`fields: ${name}`, [whole(1, list)]),
      of(`fields: ${name}, with data`, [open(1, list), frame(data, endStream, 1, latin1("{}"))]),
      of(`fields: ${name}, reset`, [open(1, list), frame(reset, 0, 1, uint32(random.below(14)))]),
    ]),
  authorities: () =>
    oddHosts.flatMap((odd) =>
      [call(statusGet, "application/json"), call(statusGet), fields("GET", "/v1/status")].map((list) =>
        of(`:authority ${odd}`, [
          open(
            1,
            list.map(([name, value]) => [name, name === ":authority" ? odd : value] as const),
          ),
          frame(data, endStream, 1, latin1("{}")),
        ]),
      ),
    ),
  "h2 paths": () =>
    oddPaths.flatMap((path) => [
      of(`GET :path ${path}`, [whole(1, fields("GET", path))]),
      of(`POST :path ${path}`, [whole(1, call(path))]),
    ]),
  hpack: () =>
    Object.entries(hpackFaults).map(([name, block]) =>
      of(`HPACK: ${name}`, [frame(headers, endHeaders | endStream, 1, block)]),
    ),
  settings: () =>
    [0, 1, 2, 3, 4, 5, 6, 8, 9, 0xffff].flatMap((id) =>
      [0, 1, 2, 16_383, 16_384, 0x7fffffff, 0x80000000, 0xffffffff].map((value) =>
        of(`setting ${id} of ${value}`, [
          settingsOf([id & 0xff, value]),
          whole(1, fields("GET", "/v1/status")),
          whole(3, call(statusGet)),
        ]),
      ),
    ),
  floods: (_random, facts) => floods(facts),
  "resets in flight": resetInFlight,
  paddings,
  "gRPC messages": (random, { key }) =>
    methods.flatMap((path) =>
      Object.entries(messages).map(([name, message]) => {
        const encoding: Fields =
          random.below(3) === 0 ? [["grpc-encoding", random.pick(["gzip", "deflate", "identity", "x"])]] : [];
        const list = call(path, "application/grpc", ["authorization", `Bearer ${key}`], ...encoding);
        return of(
          `${path} of ${name}`,
          [open(1, list), ...(random.below(2) ? [1] : []), frame(data, random.below(2), 1, message), random.below(5)],
          random.pick(["wait", "end", "reset"]),
        );
      }),
    ),
  "frames out of order": (random) =>
    Array.from({ length: 100 }, (_, index) => {
      const begun = random.below(2) ? [open(1, call(random.pick(methods), random.pick(contentTypes)))] : [];
      const frames = Array.from({ length: 1 + random.below(6) }, () => randomFrame(random));
      return of(`frames ${index}`, [...begun, ...frames], random.pick(["wait", "end", "reset"]));
    }),
};

/** Valid HTTP/2 requests. */
export const honestHttp2 = {
  get: [opening, whole(1, fields("GET", "/v1/status"))],
  grpc: [opening, open(1, call(statusGet)), frame(data, endStream, 1, envelope(0, ""))],
};
