import { tokenText } from "../../identity/token-text.ts";
import type { BearerKind, Credential } from "../../kernel/bearer-kind.ts";
import type { Database } from "../../platform/postgres/database.ts";
import { findTokens, type SessionTokenRow, tokenCredential } from "../cdp/session-tokens.ts";

const viewScope = "sessions:read";

export const viewKeyText = tokenText("phv_", "vln");

/** Client name of the viewer of a single-viewer link. GUI control keys have the client name of their creator. */
export const viewerClientOf = (linkId: string): string => `view:${linkId}`;

/** Scope that the creator of a link with control needs. */
const controlScope = (isGuiControlKey: boolean): string =>
  isGuiControlKey ? "agent_sessions:write" : "sessions:write";

/** Scopes that the creator of a link needs. */
export const scopesOfLink = (control: boolean, isGuiControlKey = false): string[] =>
  control ? [viewScope, controlScope(isGuiControlKey)] : [viewScope];

/** URL of the page that a link opens. */
export const pageOf = (publicUrl: string, key: string): string => `${publicUrl}/live#${key}`;

interface ViewKeyRow extends SessionTokenRow {
  readonly link_name: string;
  readonly control: boolean;
  readonly expires_at: Date;
  readonly client_id: string | null;
  readonly opens_until: Date | null;
}

const findStatement = findTokens("view-key-find", "view_links", [
  "name as link_name",
  "control",
  "expires_at",
  "client_id",
  "opens_until",
]);

/**
 * Creates the credential of a link. The link expires no later than the key or login of its creator. Control requires
 * that the creator still has the scope for control.
 */
function toCredential(row: ViewKeyRow): Credential {
  const { link_name: name, control, expires_at: ownEnd, ends_at: creatorEnd, scopes: creatorScopes } = row;
  const { client_id: clientId, opens_until: opensUntil } = row;
  const expiresAt = creatorEnd && creatorEnd < ownEnd ? creatorEnd : ownEnd;
  const isGuiControlKey = clientId !== null && clientId !== viewerClientOf(row.id);
  const mayControl = control && (creatorScopes?.includes(controlScope(isGuiControlKey)) ?? true);
  const person = clientId === null ? {} : { person: { linkId: row.id, clientId } };
  const credential = tokenCredential(row, { scope: viewScope, mayControl, name, ...person });
  return { ...credential, expiresAt, ...(opensUntil && { opensUntil }) };
}

/** Creates the bearer kind of view links. A link is valid only while the key or login that created it is valid. */
export function viewKeyBearers(db: Database): BearerKind {
  return {
    prefix: viewKeyText.prefix,
    parse: viewKeyText.parse,
    async find(ids) {
      const rows = await db.named<ViewKeyRow>(findStatement, [ids]);
      return new Map(rows.map((row) => [row.id, toCredential(row)]));
    },
  };
}
