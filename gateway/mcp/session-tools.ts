import { timestampDate } from "@bufbuild/protobuf/wkt";
import { FileService, FileSourceSchema } from "../../src/gen/pilothouse/v1/file_pb.ts";
import {
  type Session,
  SessionService,
  SessionStatus,
  SessionStatusSchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { enumNames } from "../../src/platform/rest-json/field-names.ts";
import { choice, defineTool, integer, sessionId, type ToolContext, text } from "./tool.ts";

/** Label of sessions that this server created. */
export const ownLabel = { made_by: "mcp" };

/** Idle timeout of new sessions in seconds: default and maximum. */
const idle = { usual: 300, longest: 3_600 };

/** Maximum numbers of listed sessions and files. */
const max = { sessions: 20, files: 50 };

const statusNames = enumNames(SessionStatusSchema);
const sourceNames = enumNames(FileSourceSchema);

function describeSession({ id, status, runtime, createdAt, expiresAt, labels }: Session) {
  return {
    session_id: id,
    status: statusNames.get(status) ?? "unknown",
    runtime,
    ...(createdAt && { created_at: timestampDate(createdAt).toISOString() }),
    ...(expiresAt && { expires_at: timestampDate(expiresAt).toISOString() }),
    ...(labels.made_by !== undefined && { made_by: labels.made_by }),
  };
}

/** Returns a page of up to 20 running sessions of the client's account, newest first. */
export async function listRunning({ call }: Pick<ToolContext, "call">, cursor?: string) {
  const query = { status: SessionStatus.LIVE, limit: max.sessions, ...(cursor !== undefined && { cursor }) };
  const { data, nextCursor } = await call(SessionService.method.list, query);
  return { sessions: data.map(describeSession), ...(nextCursor !== undefined && { next_cursor: nextCursor }) };
}

export const startSessionTool = defineTool({
  name: "start_session",
  description:
    "Starts a browser with a blank page, and returns the session_id that all other tools need. Next: navigate. End it with end_session; unused, it ends after idle_timeout_seconds.",
  hints: {},
  input: {
    runtime: choice(
      "chromium: needed by run_agent and run_recipe. Default headless-shell",
      "headless-shell",
      "chromium",
    ),
    device: text("such as desktop-chrome (default), pixel-7, iphone-15"),
    profile_id: text("a stored profile, with its logins"),
    locale: text("such as de-AT"),
    timezone: text("such as Europe/Vienna"),
    idle_timeout_seconds: integer("default 300", 10, idle.longest),
    timeout_seconds: integer("latest end", 60, 86_400),
  },
  required: [],
  output: { session_id: text("for the other tools"), status: { type: "string" }, expires_at: { type: "string" } },
  async run({ call }, args) {
    const { device, profile_id: profileId, timeout_seconds: timeoutSeconds, idle_timeout_seconds: idleTimeout } = args;
    const { runtime, locale, timezone } = args;
    const session = await call(SessionService.method.create, {
      labels: ownLabel,
      idleTimeoutSeconds: idleTimeout ?? idle.usual,
      ...(runtime !== undefined && { runtime }),
      ...(device !== undefined && { archetype: device }),
      ...(profileId !== undefined && { profileId }),
      ...(locale !== undefined && { locale }),
      ...(timezone !== undefined && { timezone }),
      ...(timeoutSeconds !== undefined && { timeoutSeconds }),
    });
    return { structured: describeSession(session) };
  },
});

export const listSessionsTool = defineTool({
  name: "list_sessions",
  description: "Lists the live sessions of the account, newest first, 20 a call.",
  hints: { readOnly: true },
  input: { cursor: text("next_cursor of the previous call") },
  required: [],
  output: { sessions: { type: "array", items: { type: "object" } }, next_cursor: { type: "string" } },
  run: async (context, { cursor }) => ({ structured: await listRunning(context, cursor) }),
});

export const endSessionTool = defineTool({
  name: "end_session",
  description: "Ends a session and its browser. Its profile, if any, is saved.",
  hints: { destructive: true, idempotent: true },
  input: sessionId,
  required: ["session_id"],
  output: { status: { type: "string" } },
  async run({ call }, { session_id: id }) {
    await call(SessionService.method.destroy, { id });
    return { structured: { status: "ended" } };
  },
});

export const filesTool = defineTool({
  name: "files",
  description:
    "Lists files of a session: uploads, downloads and captures, newest first, with links. A link needs the API key in Authorization; PUT stores a file for act's upload.",
  hints: { readOnly: true },
  input: { ...sessionId, cursor: text("next_cursor of the previous call") },
  required: ["session_id"],
  output: { files: { type: "array", items: { type: "object" } }, next_cursor: { type: "string" } },
  async run({ call, publicUrl }, { session_id: id, cursor }) {
    const query = { id, limit: max.files, ...(cursor !== undefined && { cursor }) };
    const { data, nextCursor } = await call(FileService.method.list, query);
    const listed = data.map(({ name, bytes, source }) => ({
      name,
      bytes: Number(bytes),
      source: sourceNames.get(source) ?? "unknown",
      url: `${publicUrl}/v1/sessions/${id}/files/${encodeURIComponent(name)}`,
    }));
    return {
      structured: { files: listed, ...(nextCursor !== undefined && { next_cursor: nextCursor }) },
      links: listed.map(({ name, url: uri }) => ({ name, uri })),
    };
  },
});
