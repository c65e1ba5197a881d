import { type Case, http1, latin1, type Random, type Step, uint32 } from "./bytes.ts";
import { bearer, type CaseClass, type Facts, http1Classes, upgrade } from "./http1-cases.ts";
import { honestHttp2, http2Classes } from "./http2-cases.ts";
import { otherClasses } from "./other-cases.ts";
import { streamClasses } from "./stream-cases.ts";

const classes: Readonly<Record<string, CaseClass>> = {
  ...http1Classes,
  ...http2Classes,
  ...streamClasses,
  ...otherClasses,
};

/** Regressions: each of these cases once crashed or blocked a gateway, or corrupted its counters. */
const named = [
  "Connect call of host localhost:99999",
  ":authority localhost:99999",
  '"P", then wait',
  '"PR", then reset',
  '"PRI", then end',
  "upgrade without key behind list",
  "connect drive without key behind get",
  "20 status streams reset at once",
  "fields: expect, reset",
  "post cut off in its body",
  "cdp that is gone",
  "cdp with odd protocols",
  "connect unary of no protobuf",
  "GOAWAY, then no HTTP/2",
  ...["twice", "rst", "rstend", "win", "goaway", "badframe"].flatMap((ending) => [
    `${ending} /unknown of text/plain`,
    `${ending} /unknown of application/grpc`,
  ]),
];

/** Cases after which a gateway takes seconds to notice that the client has left. Only the long test includes them. */
export const slowToRelease = ["GOAWAY, then no HTTP/2"];

/** Returns at most `perClass` random cases of each class, and all regressions. */
export function casesOf(random: Random, facts: Facts, perClass: number): Case[] {
  const lists = Object.values(classes).map((make) => shuffled(random, make(random, facts)));
  const regressions = lists.flat().filter(({ name }) => named.includes(name));
  return [...regressions, ...lists.flatMap((list) => list.slice(0, perClass))];
}

function shuffled<T>(random: Random, list: readonly T[]): T[] {
  return list
    .map((item) => ({ item, at: random.below(2 ** 31) }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

/** Changes a case at random: its bytes, their order, the segments, the end, or the combination with another case. */
export function mutate(random: Random, { name, steps, leave }: Case, other: Case): Case {
  const at = random.below(steps.length);
  const step = steps[at];
  const put = (...changed: readonly Step[]): Step[] => [...steps.slice(0, at), ...changed, ...steps.slice(at + 1)];
  const bytes = Buffer.isBuffer(step) ? step : Buffer.from([random.below(256)]);
  const cut = random.below(bytes.length + 1);
  const flipped = Buffer.from(bytes);
  if (flipped.length > 0) flipped[random.below(flipped.length)] = random.pick([0, 1, 10, 13, 32, 58, 127, 128, 255]);
  const changes: Readonly<Record<string, () => Step[]>> = {
    cut: () => [...steps.slice(0, at), bytes.subarray(0, cut)],
    split: () => put(bytes.subarray(0, cut), random.below(4), bytes.subarray(cut)),
    flipped: () => put(flipped),
    doubled: () => put(bytes, bytes),
    dropped: () => (steps.length > 1 ? put() : [...steps]),
    filled: () => put(bytes.subarray(0, cut), random.bytes(1 + random.below(20)), bytes.subarray(cut)),
    shuffled: () => [...steps.slice(0, 1), ...shuffled(random, steps.slice(1))],
    "without pauses": () => steps.filter((each) => Buffer.isBuffer(each)),
    "in single bytes": () => inBytes(steps, 300),
    "with another": () => [...steps, ...other.steps],
    "around another": () => [...steps.slice(0, at), ...other.steps, ...steps.slice(at)],
  };
  const change = random.pick(Object.keys(changes));
  const mutated = changes[change]?.() ?? [...steps];
  return {
    name: `${name} (${change})`,
    steps: mutated,
    leave: random.below(2) ? leave : random.pick(["wait", "end", "reset"]),
  };
}

/** Sends each of the first bytes as a separate segment. */
function inBytes(steps: readonly Step[], max = Number.POSITIVE_INFINITY): Step[] {
  return steps.flatMap((step): Step[] => {
    if (!Buffer.isBuffer(step)) return [step];
    const single = Array.from(step.subarray(0, max)).flatMap((byte): Step[] => [Buffer.from([byte]), 0]);
    return step.length > max ? [...single, step.subarray(max)] : single;
  });
}

/** Valid request, with its expected response. */
export interface Honest extends Case {
  readonly answer: RegExp;
}

const http2Headers = (id: number): RegExp =>
  new RegExp(`\\x01[\\x04\\x05]${uint32(id).toString("latin1").replaceAll("\0", "\\x00")}`);

/** Valid requests of every protocol, sent byte by byte. */
export function honestCases(facts: Facts): Readonly<Record<"http" | "grpc", readonly Honest[]>> {
  const session = `/v1/sessions/${facts.session}`;
  const ok = /^HTTP\/1\.1 200 /;
  const slow = (name: string, answer: RegExp, ...steps: readonly Step[]): Honest => ({
    name: `${name}, byte by byte`,
    steps: inBytes(steps),
    leave: "wait",
    answer,
  });
  const body = "Content-Length: 2";
  const close = "Connection: close";
  return {
    http: [
      slow("GET", ok, http1("GET /v1/status HTTP/1.1", ["Host: localhost", close])),
      slow(
        "POST",
        ok,
        http1(
          `POST ${session}/observe HTTP/1.1`,
          ["Host: localhost", close, bearer(facts), "Content-Type: application/json", body],
          "{}",
        ),
      ),
      slow(
        "PUT",
        /^HTTP\/1\.1 20[01] /,
        http1(`PUT ${session}/files/honest HTTP/1.1`, ["Host: localhost", close, bearer(facts), body], "ab"),
      ),
      slow(
        "WebSocket",
        new RegExp(`^HTTP/1.1 101 .*${String.fromCharCode(0x88, 2, 3, 0xe8)}$`, "s"),
        upgrade(`${session}/drive`, bearer(facts)),
        latin1('\x81\x8c\0\0\0\0{"end":true}'),
      ),
      slow("GET over HTTP/2", http2Headers(1), ...honestHttp2.get),
      slow("gRPC on the main port", http2Headers(1), ...honestHttp2.grpc),
    ],
    grpc: [slow("gRPC", http2Headers(1), ...honestHttp2.grpc)],
  };
}
