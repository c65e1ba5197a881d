import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type AgentViewService,
  type CreateMediaTokenRequest,
  type GetGuiControlKeyRequest,
  GuiControlKeySchema,
  MediaTokenSchema,
} from "../../gen/pilothouse/v1/agent_view_pb.ts";
import { authorizeGrant } from "../../identity/api-keys/grants.ts";
import type { Call } from "../../kernel/call.ts";
import type { ServiceImplementation } from "../../kernel/registry.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import { hashSecret } from "../../platform/secrets/secrets.ts";
import type { RoomGuests } from "../../sessions/media/room-guests.ts";
import { insertViewLink } from "../../sessions/view-links/store.ts";
import { pageOf, scopesOfLink, viewKeyText } from "../../sessions/view-links/view-keys.ts";
import { agentClientId, findRunning } from "./agent-sessions.ts";

export interface AgentViewParts extends Pick<PlatformParts, "db" | "clock" | "ids"> {
  readonly guests: RoomGuests;
  readonly config: { readonly publicUrl: string };
}

/** Milliseconds within which the first viewer must join. */
const opensFor = 300_000;

export function createAgentViewService(parts: AgentViewParts): ServiceImplementation<typeof AgentViewService> {
  const { db, clock, ids, guests, config } = parts;

  async function createMediaToken(call: Call, { id, clientId }: CreateMediaTokenRequest) {
    agentClientId(call, clientId);
    const { session_id: sessionId } = await findRunning(db, call, id);
    const guest = { sessionId, name: clientId ?? "Viewer", scope: "agent_sessions:read" };
    // The media server accepts a token from any IP address, so keys restricted to certain addresses are refused.
    await db.transaction((tx) => authorizeGrant(tx, call.principal, { scopes: [guest.scope], addresses: [] }));
    const { url, token, room, identity, joinsWithin } = await guests.invite(call, guest);
    const expiresAt = timestampFromDate(new Date(clock.now() + joinsWithin));
    return create(MediaTokenSchema, { url, token, room, identity, expiresAt });
  }

  async function getGuiControlKey(call: Call, { id, clientId: requested }: GetGuiControlKeyRequest) {
    const { principal } = call;
    const clientId = agentClientId(call, requested);
    const { session_id: sessionId, expires_at: sessionEnd } = await findRunning(db, call, id);
    const token = { id: ids.next("vln"), secret: viewKeyText.newSecret() };
    const opensUntil = new Date(clock.now() + opensFor);
    await db.transaction(async (tx) => {
      await authorizeGrant(tx, principal, { scopes: scopesOfLink(true, true) });
      await insertViewLink(tx, {
        id: token.id,
        session_id: sessionId,
        control: true,
        name: clientId,
        expires_at: sessionEnd,
        made_by: principal.kind === "key" ? principal.keyId : principal.loginId,
        secret_hash: hashSecret(token.secret),
        client_id: clientId,
        opens_until: opensUntil,
      });
      call.audit(tx, { subject: id, data: { link_id: token.id, client_id: clientId, session_id: sessionId } });
    });
    const key = viewKeyText.write(token);
    return create(GuiControlKeySchema, {
      key,
      expiresAt: timestampFromDate(opensUntil),
      controlUrl: `${config.publicUrl.replace(/^http/, "ws")}/v1/live`,
      pageUrl: pageOf(config.publicUrl, key),
    });
  }

  return {
    createMediaToken,
    getGuiControlKey,
  };
}
