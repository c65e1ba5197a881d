import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Call } from "../call.ts";
import {
  type AgentViewService,
  type GetGuiControlKeyRequest,
  GuiControlKeySchema,
} from "../gen/pilothouse/v1/agent_view_pb.ts";
import type { Clock } from "../platform/clock.ts";
import { fail } from "../platform/errors.ts";
import type { Ids } from "../platform/ids.ts";
import type { Database } from "../platform/postgres/database.ts";
import { hashSecret } from "../platform/secrets/secrets.ts";
import type { ServiceImplementation } from "../registry.ts";
import { insertViewLink } from "../view-links/store.ts";
import { assertMayLink, pageOf, viewKeyText } from "../view-links/view-keys.ts";
import { clientIdOf, findRunning } from "./agent-sessions.ts";

export interface AgentViewParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly config: { readonly publicUrl: string };
}

/** Milliseconds in which the first viewer can join. */
const opensFor = 300_000;

/** Makes the implementation of AgentViewService. */
export function createAgentViewService(parts: AgentViewParts): ServiceImplementation<typeof AgentViewService> {
  const { db, clock, ids, config } = parts;

  async function getGuiControlKey(call: Call, { id, clientId: said }: GetGuiControlKeyRequest) {
    const { principal } = call;
    const clientId = clientIdOf(call, said);
    const { session_id: sessionId, expires_at: sessionEnd } = await findRunning(db, call, id);
    assertMayLink(principal);
    const token = { id: ids.next("vln"), secret: viewKeyText.newSecret() };
    const opensUntil = new Date(clock.now() + opensFor);
    await db.transaction(async (tx) => {
      await insertViewLink(tx, {
        ...{ id: token.id, session_id: sessionId, control: true, name: clientId, expires_at: sessionEnd },
        made_by: principal.kind === "key" ? principal.keyId : principal.loginId,
        secret_hash: hashSecret(token.secret),
        ...{ client_id: clientId, opens_until: opensUntil },
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
    async createMediaToken(call, { id }) {
      await findRunning(db, call, id);
      throw fail("feature-unavailable", {}, { detail: "this deployment has no media server: watch by a view link" });
    },
    getGuiControlKey,
  };
}
