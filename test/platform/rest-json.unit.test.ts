import { create, createFileRegistry, type DescFile, type DescMessage, type Message } from "@bufbuild/protobuf";
import {
  AnySchema,
  DurationSchema,
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
  Int64ValueSchema,
  timestampFromMs,
  ValueSchema,
} from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { SendInputRequestSchema } from "../../src/gen/pilothouse/v1/agent_input_pb.ts";
import { EventSchema, ProblemSchema } from "../../src/gen/pilothouse/v1/common_pb.ts";
import {
  CaptureResponseSchema,
  CreateSessionRequestSchema,
  DriveRequestSchema,
  InteractRequestSchema,
  ListSessionsResponseSchema,
  NavigateRequestSchema,
  SessionSchema,
  SessionStatus,
  WaitRequestSchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import type { FieldFault } from "../../src/platform/errors.ts";
import { storedNames } from "../../src/platform/rest-json/field-names.ts";
import { parseJson } from "../../src/platform/rest-json/parse.ts";
import { compileReader } from "../../src/platform/rest-json/reader.ts";
import { compileWriter } from "../../src/platform/rest-json/writer.ts";

function read(desc: DescMessage, json: unknown): { message: Message; faults: FieldFault[] } {
  const faults: FieldFault[] = [];
  return { message: compileReader(desc)(json, faults), faults };
}

it("maps a stored name of a later release to unspecified", () => {
  const { toMessage } = storedNames(SessionStatus);
  expect([toMessage("live"), toMessage("hibernating" as "live")]).toEqual([
    SessionStatus.LIVE,
    SessionStatus.UNSPECIFIED,
  ]);
});

describe("reading REST JSON", () => {
  it.each([
    {
      what: "a oneof as one object with kind",
      desc: InteractRequestSchema,
      json: { action: { kind: "tap", selector: "#buy", count: 2 }, timeout_ms: 10 },
      message: { action: { case: "tap", value: { selector: "#buy", count: 2 } }, timeoutMs: 10 },
    },
    {
      what: "enums in lower case without prefix",
      desc: NavigateRequestSchema,
      json: { url: "about:blank", wait_until: "domcontentloaded" },
      message: { url: "about:blank", waitUntil: 2 },
    },
    {
      what: "maps, nested messages and doubles",
      desc: CreateSessionRequestSchema,
      json: { labels: { run: "7" }, viewport: { width: 800, height: 600, device_scale_factor: 1.5 } },
      message: { labels: { run: "7" }, viewport: { width: 800, height: 600, deviceScaleFactor: 1.5 } },
    },
    {
      what: "null as absent",
      desc: NavigateRequestSchema,
      json: { url: "about:blank", timeout_ms: null },
      message: { url: "about:blank" },
    },
    {
      what: "an empty oneof member",
      desc: WaitRequestSchema,
      json: { condition: { kind: "network_idle" } },
      message: { condition: { case: "networkIdle", value: {} } },
    },
    {
      what: "a command inside a command",
      desc: DriveRequestSchema,
      json: { id: "1", interact: { action: { kind: "key", key: "Enter" } } },
      message: { id: "1", interact: { action: { case: "key", value: { key: "Enter" } } } },
    },
  ])("reads $what", ({ desc, json, message }) => {
    expect(read(desc, json)).toMatchObject({ message, faults: [] });
  });

  it.each([
    { desc: NavigateRequestSchema, json: [], field: "", message: "must be an object" },
    {
      desc: NavigateRequestSchema,
      json: { uri: "x" },
      field: "uri",
      message: "is not a known field: did you mean `url`?",
    },
    { desc: NavigateRequestSchema, json: { url: 7 }, field: "url", message: "must be a string" },
    { desc: NavigateRequestSchema, json: { url: "\ud800" }, field: "url", message: "must be well-formed Unicode" },
    {
      desc: NavigateRequestSchema,
      json: { timeout_ms: -1 },
      field: "timeout_ms",
      message: "must be a whole number from 1 to 120000",
    },
    {
      desc: NavigateRequestSchema,
      json: { timeout_ms: 2 ** 32 },
      field: "timeout_ms",
      message: "must be a whole number from 1 to 120000",
    },
    {
      desc: NavigateRequestSchema,
      json: { wait_until: "LOAD" },
      field: "wait_until",
      message: "must be one of load, domcontentloaded, commit: did you mean `load`?",
    },
    {
      desc: NavigateRequestSchema,
      json: { wait_until: "unspecified" },
      field: "wait_until",
      message: "must be one of load, domcontentloaded, commit",
    },
    { desc: InteractRequestSchema, json: { action: {} }, field: "action.kind", message: "is required" },
    {
      desc: InteractRequestSchema,
      json: { action: { kind: "pinch" } },
      field: "action.kind",
      message: /^must be one of tap, type/,
    },
    {
      desc: InteractRequestSchema,
      json: { action: { kind: "__proto__" } },
      field: "action.kind",
      message: /^must be one of/,
    },
    {
      desc: InteractRequestSchema,
      json: { action: { kind: "tap", selektor: "#a" } },
      field: "action.selektor",
      message: "is not a known field: did you mean `selector`?",
    },
    {
      desc: InteractRequestSchema,
      json: { action: { kind: "tap", frame: ["#a", 1] } },
      field: "action.frame[1]",
      message: "must be a string",
    },
    {
      desc: InteractRequestSchema,
      json: { action: { kind: "tap", frame: [null] } },
      field: "action.frame[0]",
      message: "must not be null",
    },
    {
      desc: InteractRequestSchema,
      json: { action: { kind: "scroll", dy: "1" } },
      field: "action.dy",
      message: /^must be a number from -/,
    },
    { desc: CreateSessionRequestSchema, json: { labels: { a: 1 } }, field: "labels.a", message: "must be a string" },
    {
      desc: CreateSessionRequestSchema,
      json: JSON.parse('{"labels":{"__proto__":"x"}}'),
      field: "labels.__proto__",
      message: "is not a permitted key",
    },
    {
      desc: CreateSessionRequestSchema,
      json: JSON.parse('{"__proto__":{}}'),
      field: "__proto__",
      message: "is not a known field",
    },
    {
      desc: NavigateRequestSchema,
      json: JSON.parse('{"constructor":1}'),
      field: "constructor",
      message: "is not a known field",
    },
    {
      desc: NavigateRequestSchema,
      json: { timeoutMs: 1 },
      field: "timeoutMs",
      message: "is not a known field: did you mean `timeout_ms`?",
    },
  ])("rejects $json at $field", ({ desc, json, field, message }) => {
    const { faults } = read(desc, json);
    expect(faults).toEqual([
      { field, message: typeof message === "string" ? message : expect.stringMatching(message) },
    ]);
  });

  it.each([
    ["click", "tap"],
    ["Fill", "fill"],
    ["press", "key"],
    ["swpie", "swipe"],
    ["openPage", "open_page"],
    ["teleport", undefined],
  ])("suggests for the unknown action %s the similar action %s", (kind, meant) => {
    const { faults } = read(InteractRequestSchema, { action: { kind } });
    const hint = meant === undefined ? "" : `: did you mean \`${meant}\`\\?`;
    expect(faults).toEqual([
      { field: "action.kind", message: expect.stringMatching(new RegExp(`^must be one of [^:]*${hint}$`)) },
    ]);
  });

  it.each([
    { created_at: "2024-02-29T23:59:59.999+05:30" },
    { created_at: "2026-01-31T12:00:00Z" },
    { created_at: "0002-12-31T00:00:00Z" },
  ])("reads the day $created_at", (json) => {
    expect(read(SessionSchema, json).faults).toEqual([]);
  });

  it.each([
    "2026-02-30T00:00:00Z",
    "2025-02-29T00:00:00Z",
    "2026-04-31T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-01-01T24:00:00Z",
    "2026-01-01T00:00:00+24:00",
    "0000-01-01T00:00:00Z",
    "2026-01-01",
  ])("rejects the time %s", (created_at) => {
    expect(read(SessionSchema, { created_at }).faults).toMatchObject([{ field: "created_at" }]);
  });

  it("reads plain JSON into a Struct, up to the depth that every protobuf implementation can read", () => {
    const nest = (depth: number): unknown => JSON.parse(`${'{"a":'.repeat(depth)}{}${"}".repeat(depth)}`);
    const data = { text: "x", list: [1, null, { deep: true }] };
    expect(read(EventSchema, { data })).toMatchObject({ faults: [], message: { data } });
    expect(read(EventSchema, { data: nest(31) }).faults).toEqual([]);
    for (const [bad, message] of [
      [nest(100_000), "must not be nested deeper than 32"],
      [{ a: ["\ud800"] }, "must be well-formed Unicode"],
      [{ "a\0": 1 }, "must not contain U+0000"],
      [{ a: Number.POSITIVE_INFINITY }, "must not contain numbers beyond 1.8e308"],
      [[], "must be an object"],
    ] as const) {
      expect(read(EventSchema, { data: bad }).faults).toEqual([{ field: "data", message }]);
    }
  });

  it("reports all faults of a request", () => {
    const { faults } = read(NavigateRequestSchema, { url: 1, timeout_ms: "x", nope: 1 });
    expect(faults.map((fault) => fault.field)).toEqual(["url", "timeout_ms", "nope"]);
  });
});

describe("parsing a JSON body", () => {
  const parse = (text: string): string[] => {
    const faults: FieldFault[] = [];
    parseJson(Buffer.from(text), faults);
    return faults.map(({ field, message }) => `${field}: ${message}`);
  };

  it.each([
    '{"a":1,"b":{"a":2},"c":[{"a":1},{"a":2}],"d":"\\",\\"d\\":"}',
    '{"a":"{\\"b\\":1,\\"b\\":2}"}',
    '{"a\\\\":1,"a":2}',
    "[]",
    '"a"',
  ])("accepts %s", (text) => {
    expect(parse(text)).toEqual([]);
  });

  it.each([
    ['{"a":1,"a":2}', ["a: is given twice"]],
    ['{"a":{},"b":[0,{"c":[],"c":1}],"a":[]}', ["b[1].c: is given twice", "a: is given twice"]],
    ['{"a":1,"\\u0061":2}', ["a: is given twice"]],
    ['{ "a\\\\" : 1 , "a\\\\" : 2 }', ["a\\: is given twice"]],
  ])("reports the duplicate key in %s", (text, faults) => {
    expect(parse(text)).toEqual(faults);
  });

  it.each([
    ["backslashes", `{"a":"${"\\\\".repeat(500_000)}"}`],
    ["quotes", `{"a":"${'\\"'.repeat(500_000)}"}`],
    ["objects", `${'{"a":'.repeat(4_900)}0${"}".repeat(4_900)}`],
    ["repeated keys", `{${'"a":0,'.repeat(4_900)}"b":0}`],
  ])("reads very many %s within the test timeout, which requires linear time", (_, text) => {
    expect(parse(text).length).toBeLessThanOrEqual(50);
  });

  it.each([
    ["5,001 keys", `{${'"a":0,'.repeat(5_000)}"b":0}`, "more than 5000 keys"],
    ["5,001 keys in objects of a list", `[${'{"a":0},'.repeat(5_000)}{"a":0}]`, "more than 5000 keys"],
    ["20,001 numbers", `[${"0,".repeat(20_000)}0]`, "more than 20000 elements"],
    ["20,001 lists in each other", `${"[ ".repeat(20_002)}${"]".repeat(20_002)}`, "more than 20000 elements"],
    ["20,001 empty objects", `{"a":[${"{ },".repeat(20_000)}{}]}`, "more than 20000 elements"],
  ])("rejects a body of %s", (_, text, message) => {
    expect(() => parse(text)).toThrow(message);
  });

  it.each([
    ["5,000 keys", `{${Array.from({ length: 5_000 }, (_, index) => `"k${index}":[]`).join(",")}}`],
    ["20,000 elements", `{"a":[${"0,".repeat(9_999)}{}],"b":[${"[],".repeat(9_999)}"[,{:"]}`],
  ])("accepts a body of %s", (_, text) => {
    expect(parse(text)).toEqual([]);
  });
});

describe("writing REST JSON", () => {
  it("writes unset nullable fields as null and omits other unset fields", () => {
    const session = create(SessionSchema, {
      id: "ses_1",
      status: SessionStatus.LIVE,
      createdAt: timestampFromMs(Date.UTC(2026, 0, 31, 12, 0, 0, 7)),
    });
    expect(compileWriter(SessionSchema)(session)).toEqual({
      id: "ses_1",
      status: "live",
      archetype: "",
      runtime: "",
      profile_id: null,
      proxy: null,
      created_at: "2026-01-31T12:00:00.007Z",
      live_at: null,
      ended_at: null,
      ended_reason: null,
      pause_reason: null,
      idle_timeout_seconds: 0,
      labels: {},
      locale: null,
      timezone: null,
      allowed_domains: [],
      block: null,
      geolocation: null,
      logs: null,
      webdriver: false,
    });
  });

  it("writes an empty page of a list", () => {
    expect(compileWriter(ListSessionsResponseSchema)(create(ListSessionsResponseSchema))).toEqual({
      data: [],
      has_more: false,
      next_cursor: null,
    });
  });

  it("writes bytes as base64 and sizes as numbers", () => {
    const capture = create(CaptureResponseSchema, { bytes: 3n, data: new Uint8Array([1, 2, 3]) });
    expect(compileWriter(CaptureResponseSchema)(capture)).toMatchObject({ bytes: 3, data: "AQID" });
  });

  it("writes a oneof that it reads back unchanged", () => {
    const action = { kind: "type", text: "a", frame: [], clear: true, insert: false };
    const json = { id: "", action, while_paused: false, next: [] };
    expect(compileWriter(InteractRequestSchema)(read(InteractRequestSchema, json).message)).toEqual(json);
  });

  it("reads and writes a message that consists of a oneof as the oneof's object", () => {
    const json = { event: { kind: "key_down", key: "a", code: "", modifiers: [] }, events: [] };
    const { message, faults } = read(SendInputRequestSchema, json);
    expect(faults).toEqual([]);
    expect(compileWriter(SendInputRequestSchema)(message)).toMatchObject({ event: { kind: "key_down", key: "a" } });
  });

  it("writes a problem's extensions as members of the problem", () => {
    const problem = create(ProblemSchema, { type: "t", status: 409, extensions: { active_session_id: "ses_1" } });
    expect(compileWriter(ProblemSchema)(problem)).toMatchObject({ type: "t", active_session_id: "ses_1" });
    expect(compileWriter(ProblemSchema)(problem)).not.toHaveProperty("extensions");
  });
});

describe("types without a REST JSON form", () => {
  it.each([DurationSchema, AnySchema, Int64ValueSchema, ValueSchema])("are refused: $typeName", (type) => {
    const thing = messageWith(type);
    expect(() => compileReader(thing)({}, [])).toThrow(`${type.typeName} has no form`);
    expect(() => compileWriter(thing)(create(thing))).toThrow(`${type.typeName} has no form`);
  });
});

/** Creates a message type with one field, a list of another type. */
function messageWith({ file, typeName }: DescMessage): DescMessage {
  const proto = create(FileDescriptorProtoSchema, {
    name: "planted.proto",
    package: "planted",
    syntax: "proto3",
    dependency: [file.proto.name],
    messageType: [
      {
        name: "Thing",
        field: [
          {
            name: "items",
            number: 1,
            label: FieldDescriptorProto_Label.REPEATED,
            type: FieldDescriptorProto_Type.MESSAGE,
            typeName: `.${typeName}`,
          },
        ],
      },
    ],
  });
  const known = (name: string): DescFile | undefined => (name === file.proto.name ? file : undefined);
  const desc = createFileRegistry(proto, known).getMessage("planted.Thing");
  if (!desc) throw new Error("planted.Thing was not made");
  return desc;
}
