import { createHash } from "node:crypto";
import type { Call } from "../kernel/call.ts";
import { fail } from "../platform/errors.ts";
import { randomText, toBase32 } from "../platform/ids.ts";
import { callerOf, type SessionCaller } from "../sessions/commands/session-caller.ts";
import { noSession } from "../sessions/ended-session.ts";
import { admitPerson, type OneViewerParts } from "../sessions/view-links/one-viewer.ts";

/** What a bearer has to have to control any session of its account; a view link says by itself whether it may. */
const controlScope = "sessions:write";

/** Where a viewer shows the secret that it has joined with, in a request of its own. */
const keyHeader = "x-viewer-key";

/** Whether the bearer of a call may take control of the session that it watches. */
export function mayControl({ principal }: Pick<Call, "principal">): boolean {
  return principal.mayControl ?? principal.scopes.has(controlScope);
}

/** Throws for who may only watch. */
export function assertMayControl(call: Pick<Call, "principal">): void {
  if (!mayControl(call)) throw fail("forbidden", {}, { detail: "the link is for watching only" });
}

/** Throws for who has a link to another session. */
export function assertOwnSession({ principal: { sessionId } }: Pick<Call, "principal">, id: string): void {
  if (sessionId !== undefined && id !== sessionId) throw noSession();
}

/** The same secret gives the same viewer of a session; its name is told to all, and gives nothing away of it. */
export function viewerIdOf(sessionId: string, key: string): string {
  const digest = createHash("sha256").update(`${sessionId} ${key}`).digest("hex");
  return `vwr_${toBase32(BigInt(`0x${digest}`) & ((1n << 130n) - 1n), 26)}`;
}

/** The client as which a viewer controls. */
export function clientIdOf({ principal }: Pick<Call, "principal">, viewerId: string): string {
  return principal.person?.clientId ?? `view:${viewerId}`;
}

/**
 * The viewer that makes a request beside its stream. Without the secret of one it is a viewer that nobody has been, and that
 * steers nothing.
 */
export async function steererOf(
  parts: OneViewerParts,
  call: Call,
  id: string,
): Promise<SessionCaller & { readonly clientId: string }> {
  assertOwnSession(call, id);
  assertMayControl(call);
  const key = call.header(keyHeader) || randomText(40);
  await admitPerson(parts, call, key);
  return { ...callerOf(call), clientId: clientIdOf(call, viewerIdOf(id, key)) };
}
