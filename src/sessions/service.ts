import { create } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import {
  type ListSessionsRequest,
  ListSessionsResponseSchema,
  type SessionService,
} from "../gen/pilothouse/v1/session_pb.ts";
import type { Call } from "../kernel/call.ts";
import type { ServiceImplementation } from "../kernel/registry.ts";
import { idPattern } from "../platform/ids.ts";
import { cutPage, readCursor } from "../platform/list-page.ts";
import { type CdpParts, createCdpMethods } from "./cdp/cdp.ts";
import { collectCapture } from "./commands/capture-file.ts";
import { createDrive } from "./commands/drive.ts";
import { createThumbnails, type ThumbnailParts } from "./commands/thumbnails.ts";
import { type ConnectParts, createConnectMethods } from "./connect/connect-methods.ts";
import { collectFetch } from "./fetch/fetch.ts";
import { splitLabel } from "./launch/split-label.ts";
import { toSessionMessage, toStoredStatus } from "./session-message.ts";
import { listSessions } from "./store.ts";

export type SessionServiceParts = CdpParts & ConnectParts & ThumbnailParts;

const defaultPage = 20;

const sessionId = idPattern("ses");

export function createSessionService(parts: SessionServiceParts): ServiceImplementation<typeof SessionService> {
  const { db, sessions } = parts;
  const { navigate, interact, wait, observe, read, getState, captureStream } = sessions;

  async function list({ principal }: Call, { limit = defaultPage, cursor, status, label }: ListSessionsRequest) {
    const query = {
      accountId: principal.accountId,
      status: toStoredStatus(status),
      labels: Object.fromEntries(label.map(splitLabel)),
      before: readCursor(cursor, sessionId),
    };
    const { rows, position } = cutPage(await listSessions(db, { ...query, limit: limit + 1 }), limit);
    return create(ListSessionsResponseSchema, { data: rows.map(toSessionMessage), ...position });
  }

  return {
    create: (call, request) => sessions.launch(call, request),
    list,
    get: async (call, { id, includeEnded }) => toSessionMessage(await sessions.find(call, id, includeEnded)),
    update: (call, request) => sessions.update(call, request),
    navigate,
    interact,
    wait,
    observe,
    read,
    getState,
    capture: (call, request) => collectCapture(captureStream(call, request), (bytes) => call.holdCapture(bytes)),
    captureStream,
    async destroy(call, { id }) {
      await sessions.end(call, id, { reason: "destroyed" });
      return create(EmptySchema);
    },
    fetch: (call, request) => collectFetch(sessions.fetch(call, request), (bytes) => call.holdCapture(bytes)),
    fetchStream: (call, request) => sessions.fetch(call, request),
    drive: createDrive(sessions),
    ...createCdpMethods(parts),
    ...createConnectMethods(parts),
    watchThumbnails: createThumbnails(parts),
    watch: (call, { id, afterEventId: after }) => {
      const onStart = (eventId: string) => call.startAfter(eventId);
      return sessions.follow({ caller: call, id, after, signal: call.signal, onStart });
    },
  };
}
