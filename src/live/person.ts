import { createHash } from "node:crypto";
import type { Call } from "../kernel/call.ts";
import { fail } from "../platform/errors.ts";
import { randomText, toBase32 } from "../platform/ids.ts";
import { callerOf, type PersonCaller } from "../sessions/commands/session-caller.ts";
import { noSession } from "../sessions/ended-session.ts";
import { admitPerson, type OneViewerParts } from "../sessions/view-links/one-viewer.ts";

/** Scope that allows control of any session of the account; a view link carries its own permission. */
const controlScope = "sessions:write";

/** Header in which a viewer repeats the secret of its join message, for requests outside its stream. */
const keyHeader = "x-viewer-key";

/** Returns whether the bearer of a call may take control of the session. */
export function mayControl({ principal }: Pick<Call, "principal">): boolean {
  return principal.mayControl ?? principal.scopes.has(controlScope);
}

/** Throws `forbidden` if the caller may only watch. */
export function assertMayControl(call: Pick<Call, "principal">): void {
  if (!mayControl(call))
    throw fail(
      "forbidden",
      {},
      {
        detail: "the key or link allows only watching: use a key with the scope sessions:write, or a link with control",
      },
    );
}

/** Throws `not-found` if the caller's link is for another session. */
export function assertOwnSession({ principal: { sessionId } }: Pick<Call, "principal">, id: string): void {
  if (sessionId !== undefined && id !== sessionId) throw noSession();
}

/** Derives the identifier of a viewer from its secret. The identifier is public and does not disclose the secret. */
export function viewerIdOf(sessionId: string, key: string): string {
  const digest = createHash("sha256").update(`${sessionId} ${key}`).digest("hex");
  return `vwr_${toBase32(BigInt(`0x${digest}`) & ((1n << 130n) - 1n), 26)}`;
}

/** Client name under which a viewer takes control. */
export function viewerClientId({ principal }: Pick<Call, "principal">, viewerId: string): string {
  return principal.person?.clientId ?? `view:${viewerId}`;
}

/**
 * Identifies the viewer that sends a request outside of the viewer's stream. A request without a secret counts as the
 * request of a new viewer, which holds no control.
 */
export async function controllerOf(parts: OneViewerParts, call: Call, id: string): Promise<PersonCaller> {
  assertOwnSession(call, id);
  assertMayControl(call);
  const key = call.header(keyHeader) || randomText(40);
  await admitPerson(parts, call, key);
  return { ...callerOf(call), clientId: viewerClientId(call, viewerIdOf(id, key)) };
}
