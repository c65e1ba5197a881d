import { create } from "@bufbuild/protobuf";
import { EmptySchema, timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type CreateViewLinkRequest,
  type DeleteViewLinkRequest,
  type ListViewLinksRequest,
  ListViewLinksResponseSchema,
  type ViewLink,
  ViewLinkSchema,
  type ViewLinkService,
} from "../../gen/pilothouse/v1/view_link_pb.ts";
import { authorizeGrant } from "../../identity/api-keys/grants.ts";
import type { Call } from "../../kernel/call.ts";
import type { ServiceImplementation } from "../../kernel/registry.ts";
import { fail } from "../../platform/errors.ts";
import { idPattern } from "../../platform/ids.ts";
import { cutPage, readCursor } from "../../platform/list-page.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import { hashSecret } from "../../platform/secrets/secrets.ts";
import type { Sessions } from "../sessions.ts";
import { insertViewLink, listViewLinks, revokeViewLink, type ViewLinkRow } from "./store.ts";
import { pageOf, scopesOfLink, viewerClientOf, viewKeyText } from "./view-keys.ts";

export interface ViewLinkServiceParts extends Pick<PlatformParts, "db" | "bus" | "clock"> {
  readonly sessions: Pick<Sessions, "assertRunning">;
  readonly config: { readonly publicUrl: string };
}

const defaultPage = 20;
const defaultSeconds = 3_600;

const linkId = idPattern("vln");

function toMessage(row: ViewLinkRow, url?: string): ViewLink {
  return create(ViewLinkSchema, {
    id: row.id,
    sessionId: row.session_id,
    control: row.control,
    name: row.name,
    createdAt: timestampFromDate(row.created_at),
    expiresAt: timestampFromDate(row.expires_at),
    ...(url !== undefined && { url }),
  });
}

export function createViewLinkService(parts: ViewLinkServiceParts): ServiceImplementation<typeof ViewLinkService> {
  const { db, bus, clock, sessions, config } = parts;

  async function createLink(
    call: Call,
    { id: sessionId, control, name, singleViewer, ...request }: CreateViewLinkRequest,
  ) {
    await sessions.assertRunning(call, sessionId);
    const { principal } = call;
    const token = { id: call.ids.next("vln"), secret: viewKeyText.newSecret() };
    const { expiresInSeconds = defaultSeconds } = request;
    const expiresAt = new Date(clock.now() + expiresInSeconds * 1_000);
    return call.commit(async (tx) => {
      await authorizeGrant(tx, principal, { scopes: scopesOfLink(control) });
      const row = await insertViewLink(tx, {
        id: token.id,
        session_id: sessionId,
        control,
        name,
        expires_at: expiresAt,
        made_by: principal.kind === "key" ? principal.keyId : principal.loginId,
        secret_hash: hashSecret(token.secret),
        ...(singleViewer && { client_id: viewerClientOf(token.id), opens_until: expiresAt }),
      });
      const data = { link_id: row.id, control, name, expires_at: expiresAt.toISOString() };
      call.audit(tx, { subject: sessionId, data });
      return toMessage(row, pageOf(config.publicUrl, viewKeyText.write(token)));
    });
  }

  async function list(call: Call, { id: sessionId, limit = defaultPage, cursor }: ListViewLinksRequest) {
    await sessions.assertRunning(call, sessionId);
    const query = { sessionId, now: new Date(clock.now()), before: readCursor(cursor, linkId) };
    const { rows, position } = cutPage(await listViewLinks(db, { ...query, limit: limit + 1 }), limit);
    return create(ListViewLinksResponseSchema, { data: rows.map((row) => toMessage(row)), ...position });
  }

  async function revoke(call: Call, { id: sessionId, linkId: id }: DeleteViewLinkRequest) {
    await sessions.assertRunning(call, sessionId);
    await db.transaction(async (tx) => {
      const isRevoked = await revokeViewLink(tx, { id, sessionId, now: new Date(clock.now()) });
      if (!isRevoked) throw fail("not-found", {}, { detail: "the session has no view link with this id" });
      call.audit(tx, { subject: sessionId, data: { link_id: id } });
      tx.afterCommit(() => bus.publish("bearer-changed", id));
    });
    return create(EmptySchema);
  }

  return { create: createLink, list, delete: revoke };
}
