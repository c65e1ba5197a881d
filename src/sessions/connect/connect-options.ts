import { createHash } from "node:crypto";
import { create, toBinary } from "@bufbuild/protobuf";
import { ViewportSchema } from "../../gen/pilothouse/v1/common_pb.ts";
import {
  type ConnectOptions,
  ConnectOptionsSchema,
  type CreateSessionRequest,
  CreateSessionRequestSchema,
  ProxySchema,
} from "../../gen/pilothouse/v1/session_pb.ts";
import { failFields } from "../../platform/errors.ts";
import { compileWriter } from "../../platform/rest-json/writer.ts";
import { splitLabel } from "../launch/split-label.ts";

const write = compileWriter(ConnectOptionsSchema);

/** Returns the request that creates a session with these options. */
export function toCreateRequest({ label, viewport, proxy, ...options }: ConnectOptions): CreateSessionRequest {
  const [width = 0, height = 0] = viewport?.split("x").map(Number) ?? [];
  const { name: _, sessionId: _id, keepAlive: _keepAlive, $typeName: _type, $unknown: _unknown, ...same } = options;
  return create(CreateSessionRequestSchema, {
    ...same,
    labels: Object.fromEntries(label.map(splitLabel)),
    ...(viewport !== undefined && { viewport: create(ViewportSchema, { width, height }) }),
    ...(proxy !== undefined && { proxy: create(ProxySchema, { server: proxy }) }),
  });
}

/** Throws if `session_id` is combined with options of a new session. */
export function assertOptions(options: ConnectOptions): void {
  if (options.sessionId === undefined) return;
  const others = Object.keys(toQuery(options)).filter((name) => name !== "session_id");
  if (others.length === 0) return;
  throw failFields(
    "validation-failed",
    Object.fromEntries(others.map((name) => [name, "must be absent with session_id"])),
  );
}

/** Returns the options that are set, as query parameters. */
function toQuery(options: ConnectOptions): Record<string, string | string[]> {
  const set = Object.entries(write(options)).filter(
    ([, value]) => value !== null && value !== false && !(Array.isArray(value) && value.length === 0),
  );
  return Object.fromEntries(
    set.map(([name, value]) => [name, Array.isArray(value) ? value.map(String) : String(value)]),
  );
}

/** Returns the options as the query part of a URL: empty, or starting with `?`. */
export function writeQuery(options: ConnectOptions): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(toQuery(options)))
    for (const each of [value].flat()) query.append(name, each);
  return query.size === 0 ? "" : `?${query}`;
}

/** Returns a hash of the options, to which a ticket is bound. */
export function hashOptions(options: ConnectOptions): Buffer {
  return createHash("sha256").update(toBinary(ConnectOptionsSchema, options)).digest();
}
