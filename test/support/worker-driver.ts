import { type DescMessage, type JsonObject, type MessageShape, toJson } from "@bufbuild/protobuf";
import {
  CaptureHeaderSchema,
  CaptureKind,
  InteractResponseSchema,
  NavigateResponseSchema,
  SessionStateSchema,
  WaitResponseSchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { asFailure } from "../../src/platform/errors.ts";
import type { HostileDriver } from "./hostile-runner.ts";
import type { DrivenSession } from "./worker-under-test.ts";

type Json = Readonly<Record<string, unknown>>;

/** Controls a session of a worker under test by requests in REST JSON. */
export function workerDriver(session: DrivenSession): HostileDriver {
  return {
    async run(operation, request) {
      try {
        return { answer: await run(session, operation, toInit(request)) };
      } catch (thrown) {
        const { slug, detail = "", extensions } = asFailure(thrown);
        return { problem: { slug, detail, extensions } };
      }
    },
  };
}

async function run(session: DrivenSession, operation: Parameters<HostileDriver["run"]>[0], init: Json): Promise<Json> {
  switch (operation) {
    case "navigate":
      return restJson(NavigateResponseSchema, await session.navigate(init));
    case "interact":
      return restJson(InteractResponseSchema, await session.interact(init));
    case "wait":
      return restJson(WaitResponseSchema, await session.wait(init));
    case "capture": {
      const kind = String(init.kind).toUpperCase() as keyof typeof CaptureKind;
      return restJson(CaptureHeaderSchema, (await session.capture({ ...init, kind: CaptureKind[kind] })).header);
    }
    case "state":
      return restJson(SessionStateSchema, await session.state());
  }
}

/** Converts `{kind, ...}` to a oneof, and snake_case to the field names in code. */
function toInit(json: Json): Record<string, unknown> {
  const entries = Object.entries(json).map(([key, value]) => {
    const name = camel(key);
    if ((key === "action" || key === "condition") && isObject(value)) {
      const { kind, ...members } = value;
      return [name, { case: camel(String(kind)), value: toInit(members) }];
    }
    return [name, isObject(value) ? toInit(value) : value];
  });
  return Object.fromEntries(entries);
}

function restJson<Desc extends DescMessage>(desc: Desc, message: MessageShape<Desc>): JsonObject {
  const json = toJson(desc, message, { alwaysEmitImplicit: true, useProtoFieldName: true });
  if (!isObject(json)) throw new Error("a message is a JSON object");
  return numbered(json) as JsonObject;
}

/** Converts 64-bit integers from strings in ProtoJSON to numbers as in REST. */
function numbered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(numbered);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, key.startsWith("bytes") ? Number(item) : numbered(item)]),
  );
}

function camel(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase());
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
