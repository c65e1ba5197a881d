import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { kindExamples, requestExample } from "../../../gateway/openapi/examples.ts";

/** A message with as much of one element as a transport accepts. */
export interface Shape {
  readonly name: string;
  /** Creates the bytes on demand, since all shapes together take a gigabyte. */
  bytes(): Buffer;
}

/** Filler texts, chosen to trigger backtracking in careless patterns and loops. */
const fillings = ["a", "@a", "%2", "..", "é", " "];

/** Repeats `unit` between two ends up to `limit` bytes. */
function fill(head: string, unit: string, tail: string, limit: number): Buffer {
  const room = limit - Buffer.byteLength(head + tail);
  return Buffer.from(head + unit.repeat(Math.max(0, Math.floor(room / Buffer.byteLength(unit)))) + tail);
}

function countedKeys(limit: number, max: number): Buffer {
  let text = "{";
  for (let count = 0; count < max && text.length < limit - 20; count += 1) text += `"k${count}":0,`;
  return Buffer.from(`${text}"k":0}`);
}

/** Returns JSON messages that match no method. */
export function jsonShapes(limit: number): Shape[] {
  const shape = (name: string, head: string, unit: string, tail: string): Shape => ({
    name,
    bytes: () => fill(head, unit, tail, limit),
  });
  return [
    shape("one text", '{"x":"', "a", '"}'),
    shape("escapes", '{"x":"', "\\u00e9", '"}'),
    shape("halves of pairs", '{"x":"', "\\ud83d", '"}'),
    shape("one key", '{"', "a", '":0}'),
    shape("the same key", "{", '"":0,', '"":0}'),
    { name: "900 keys", bytes: () => countedKeys(limit, 900) },
    { name: "4,900 keys", bytes: () => countedKeys(limit, 4_900) },
    { name: "too many keys", bytes: () => countedKeys(limit, Number.POSITIVE_INFINITY) },
    shape("numbers", '{"x":[', "0,", "0]}"),
    shape("texts", '{"x":[', '"",', '""]}'),
    shape("objects", '{"x":[', "{},", "{}]}"),
    shape("open lists", "", "[", ""),
    { name: "nested lists", bytes: () => Buffer.concat([fill("", "[", "", limit / 2), fill("", "]", "", limit / 2)]) },
    { name: "nested objects", bytes: () => Buffer.from(`${'{"":'.repeat(limit / 5)}0${"}".repeat(limit / 5)}`) },
    shape("one number", '{"x":', "1", "}"),
    shape("spaces", "", " ", "{}"),
    shape("a faulty end", '{"x":"', "a", '"}}'),
    { name: "no UTF-8", bytes: () => Buffer.alloc(limit, 0xff) },
    { name: "one byte too many", bytes: () => Buffer.alloc(limit + 1, 0x20) },
  ];
}

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** Returns valid messages of a method with one text, list or map as long as possible. */
export function jsonFieldShapes(input: DescMessage, omit: ReadonlySet<string>, limit: number): Shape[] {
  const whole = requestExample(input, omit) as Json;
  const samples: [string, Json][] = [
    ["", whole],
    ...kindExamples(input, omit).map(([kind, { value }]): [string, Json] => [`${kind} `, value as Json]),
  ];
  const texts = input.fields.filter((field) => isText(field) && !omit.has(field.name));
  const filled = texts.map(({ name }): [string, Json] => ["", { ...Object(whole), [name]: "" }]);
  const shapes = [...samples, ...filled].flatMap(([kind, sample]) =>
    placesIn(sample).map(([name, splice]) => ({ name: `${kind}${name}`, bytes: () => splice(limit) })),
  );
  return [...new Map(shapes.map((shape) => [shape.name, shape])).values()];
}

const isText = (field: DescField): boolean => field.fieldKind === "scalar" && field.scalar === ScalarType.STRING;

type Place = readonly [name: string, splice: (limit: number) => Buffer];

/** Returns the places of a sample that can be extended. */
function placesIn(sample: Json): Place[] {
  const mark = "\u0007";
  const places: Place[] = [];
  const copyWith = (path: readonly (string | number)[], value: Json): string => {
    const copy = structuredClone(sample);
    let at = copy as Record<string | number, Json>;
    for (const step of path.slice(0, -1)) at = at[step] as Record<string | number, Json>;
    at[path.at(-1) ?? ""] = value;
    return JSON.stringify(copy);
  };
  const split = (text: string, around: string): [string, string] => {
    const [head = "", tail = ""] = text.split(around);
    return [head, tail];
  };
  const walk = (value: Json, path: readonly (string | number)[]): void => {
    const name = path.join(".");
    if (typeof value === "string" && path.length > 0) {
      const [head, tail] = split(copyWith(path, mark), JSON.stringify(mark).slice(1, -1));
      for (const filling of fillings)
        places.push([`${name} of "${filling}"`, (limit) => fill(head, filling, tail, limit)]);
    }
    if (Array.isArray(value) && value.length > 0) {
      const [head, tail] = split(copyWith(path, [mark]), JSON.stringify(mark));
      const item = JSON.stringify(value[0]);
      places.push([`${name} of many`, (limit) => fill(head, `${item},`, item + tail, limit)]);
      walk(value[0] as Json, [...path, 0]);
    } else if (value && typeof value === "object") {
      for (const [key, inner] of Object.entries(value)) walk(inner, [...path, key]);
    }
  };
  walk(sample, []);
  return places;
}

/** Repeats bytes up to `limit`. */
function fillBytes(head: readonly number[], unit: readonly number[], limit: number): Buffer {
  return Buffer.concat([
    Buffer.from(head),
    Buffer.from(unit.length === 1 ? new Uint8Array(limit - head.length).fill(unit[0] ?? 0) : repeated(unit, limit)),
  ]).subarray(0, limit - ((limit - head.length) % unit.length));
}

function repeated(unit: readonly number[], limit: number): Buffer {
  return Buffer.alloc(limit, Buffer.from(unit));
}

/** Encodes a number as a base-128 varint. */
function varint(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...varint(Math.floor(value / 128))];
}

/** Protobuf wire types: https://protobuf.dev/programming-guides/encoding/#structure */
const wire = { varint: 0, bytes: 2, groupStart: 3, groupEnd: 4 };
const tag = (field: number, type: number): number[] => varint(field * 8 + type);

/** Encodes a length-delimited field after its tag. */
const joined = (start: readonly number[], inner: Buffer): Buffer =>
  Buffer.concat([Buffer.from([...start, ...varint(inner.length)]), inner]);

/** Returns protobuf messages that match no method. */
export function binaryShapes(limit: number): Shape[] {
  const unknown = 1_000;
  const open = tag(unknown, wire.groupStart);
  const close = tag(unknown, wire.groupEnd);
  const nested = () => Buffer.concat([fillBytes([], open, limit / 2), fillBytes([], close, limit / 2)]);
  return [
    { name: "unknown numbers", bytes: () => fillBytes([], [...tag(unknown, wire.varint), 0], limit) },
    { name: "unknown texts", bytes: () => fillBytes([], [...tag(unknown, wire.bytes), 0], limit) },
    { name: "open groups", bytes: () => fillBytes([], open, limit) },
    { name: "nested groups", bytes: nested },
    { name: "a varint without an end", bytes: () => Buffer.alloc(limit, 0xff) },
    { name: "zeros", bytes: () => Buffer.alloc(limit) },
    { name: "one byte too many", bytes: () => fillBytes([], [...tag(unknown, wire.varint), 0], limit + 3) },
  ];
}

/** Returns messages of a method with one field as long, or repeated as often, as possible. */
export function binaryFieldShapes(input: DescMessage, limit: number): Shape[] {
  return input.fields.flatMap((field): Shape[] => {
    const start = tag(field.number, wire.bytes);
    const long = (name: string, byte: number): Shape => {
      const room = limit - start.length - 4;
      return { name: `${field.name} ${name}`, bytes: () => joined(start, Buffer.alloc(room, byte)) };
    };
    const often: Shape = { name: `${field.name} again and again`, bytes: () => fillBytes([], [...start, 0], limit) };
    if (field.fieldKind === "scalar" && field.scalar === ScalarType.STRING)
      return [long('of "a"', 0x61), long("of no UTF-8", 0xff), often];
    if (field.fieldKind === "scalar" && field.scalar === ScalarType.BYTES) return [long("of zeros", 0)];
    if (field.fieldKind === "list" && (field.scalar ?? field.enum) !== undefined && field.scalar !== ScalarType.STRING)
      return [long("packed", 0)];
    if (field.fieldKind === "message") {
      // Repeats field 1 of the inner message, so that a list or map inside is as long as possible.
      const room = limit - start.length - 4;
      const inner = () => fillBytes([], [0x0a, 0], room);
      return [often, { name: `${field.name} with many`, bytes: () => joined(start, inner()) }];
    }
    return field.fieldKind === "list" || field.fieldKind === "map" ? [often] : [];
  });
}

/** A request head as large as Node's parser accepts. */
export interface Head {
  readonly name: string;
  path(path: string): string;
  readonly headers: Readonly<Record<string, string>>;
}

const longestHead = 15_000;

/** Request heads with the longest possible query. */
export const queries: readonly Head[] = ["a=0&", "a&", "limit=1&", "%41=%41&", "a[]=&", "cursor=aaaaaaaa"].map(
  (unit) => ({
    name: `a query of "${unit}"`,
    path: (path: string) => `${path}?${unit.repeat(longestHead / unit.length)}`,
    headers: {},
  }),
);

/** Request heads with as much of one element as possible. */
export const heads: readonly Head[] = [
  ...["a", "%2f", "../", "%e9", "a/", "%"].map((unit) => ({
    name: `a path of "${unit}"`,
    path: (path: string) => `${path}/${unit.repeat(longestHead / unit.length)}`,
    headers: {},
  })),
  ...queries,
  ...Object.entries({
    authorization: `Bearer ${"a".repeat(longestHead)}`,
    cookie: "a=b; ".repeat(longestHead / 5),
    accept: "a/b;q=0.1, ".repeat(longestHead / 11),
    "accept-encoding": "gzip;q=0.1, ".repeat(longestHead / 12),
    "accept-language": "aa-aa;q=0.1, ".repeat(longestHead / 13),
    "if-none-match": '"a", '.repeat(longestHead / 5),
    "x-forwarded-for": "10.0.0.1, ".repeat(longestHead / 10),
    "x-request-id": "a".repeat(longestHead),
    traceparent: "00-".repeat(longestHead / 3),
    tracestate: "a=b,".repeat(longestHead / 4),
    origin: `https://${"a.".repeat(longestHead / 2)}`,
    "content-type": `application/json;${"a=b;".repeat(longestHead / 4)}`,
    "idempotency-key": "a".repeat(longestHead),
    range: `bytes=${"0-1,".repeat(longestHead / 4)}`,
  }).map(([name, value]) => ({ name: `a header ${name}`, path: (path: string) => path, headers: { [name]: value } })),
  {
    name: "many headers",
    path: (path) => path,
    headers: Object.fromEntries(Array.from({ length: 900 }, (_, index) => [`x-${index}`, "0"])),
  },
];
