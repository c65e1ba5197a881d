import { create } from "@bufbuild/protobuf";
import { EmptySchema, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import {
  type CdpRequest,
  type CdpResponse,
  CdpUrlSchema,
  type CreateCdpUrlRequest,
  type DeleteCdpUrlsRequest,
  type GetCdpVersionRequest,
  type SessionService,
} from "../../gen/pilothouse/v1/session_pb.ts";
import { authorizeGrant } from "../../identity/api-keys/grants.ts";
import type { Call } from "../../kernel/call.ts";
import type { ServiceImplementation, StreamRelay } from "../../kernel/registry.ts";
import { failFields } from "../../platform/errors.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import { hashSecret } from "../../platform/secrets/secrets.ts";
import { noSession } from "../ended-session.ts";
import type { Sessions } from "../sessions.ts";
import { cdpScope, cdpTokenText, insertCdpToken, revokeCdpTokens } from "./cdp-tokens.ts";

/** Milliseconds for which a CDP URL accepts new connections. */
const opensFor = 3_600_000;

export interface CdpParts extends Pick<PlatformParts, "db" | "bus" | "clock"> {
  readonly sessions: Sessions;
  readonly config: { readonly publicUrl: string };
}

type CdpMethods = Pick<
  ServiceImplementation<typeof SessionService>,
  "createCdpUrl" | "deleteCdpUrls" | "getCdpVersion" | "cdp"
>;

/** Creates the methods with which CDP clients find a session and connect to it. */
export function createCdpMethods({ db, bus, clock, sessions, config }: CdpParts): CdpMethods {
  const addressOf = (sessionId: string, token?: string): string =>
    `${config.publicUrl.replace(/^http/, "ws")}/v1/sessions/${sessionId}/cdp${token === undefined ? "" : `/${token}`}`;

  /** Throws if the session does not belong to the caller, or has ended. */
  async function assertOpen(call: Call, id: string): Promise<void> {
    const { sessionId = id } = call.principal;
    if (sessionId !== id) throw noSession();
    await sessions.assertRunning(call, id);
  }

  return {
    async createCdpUrl(call, { id: sessionId }: CreateCdpUrlRequest) {
      await assertOpen(call, sessionId);
      const { principal } = call;
      const token = { id: call.ids.next("cdp"), secret: cdpTokenText.newSecret() };
      const opensUntil = new Date(clock.now() + opensFor);
      const createdBy = principal.kind === "key" ? principal.keyId : principal.loginId;
      return call.commit(async (tx) => {
        await authorizeGrant(tx, principal, { scopes: [cdpScope] });
        const secretHash = hashSecret(token.secret);
        await insertCdpToken(tx, { id: token.id, sessionId, createdBy, secretHash, opensUntil });
        call.audit(tx, { subject: sessionId, data: { opens_until: opensUntil.toISOString() } });
        const url = addressOf(sessionId, cdpTokenText.write(token));
        return create(CdpUrlSchema, { url, expiresAt: timestampFromDate(opensUntil) });
      });
    },

    async deleteCdpUrls(call, { id: sessionId }: DeleteCdpUrlsRequest) {
      await assertOpen(call, sessionId);
      await db.transaction(async (tx) => {
        await revokeCdpTokens(tx, sessionId, new Date(clock.now()));
        call.audit(tx, { subject: sessionId });
        // Gateways check all tokens of a session again when its identifier is published.
        tx.afterCommit(() => bus.publish("bearer-changed", sessionId));
      });
      return create(EmptySchema);
    },

    async getCdpVersion(call, { id }: GetCdpVersionRequest) {
      await assertOpen(call, id);
      const isByToken = call.principal.sessionId !== undefined;
      const token = isByToken ? call.header("authorization")?.replace(/^Bearer +/i, "") : undefined;
      const version = {
        Browser: "Chrome",
        "Protocol-Version": "1.3",
        webSocketDebuggerUrl: addressOf(id, token),
      };
      return create(HttpBodySchema, { contentType: "application/json", data: Buffer.from(JSON.stringify(version)) });
    },

    async cdp(call, { sessionId }: CdpRequest): Promise<StreamRelay<CdpRequest, CdpResponse>> {
      if (sessionId === "") throw failFields("validation-failed", { session_id: "is required in the first message" });
      await assertOpen(call, sessionId);
      return { relay: (messages) => sessions.proxyCdp(call, sessionId, messages) };
    },
  };
}
