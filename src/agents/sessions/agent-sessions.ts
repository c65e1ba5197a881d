import type { Call } from "../../kernel/call.ts";
import { fail, failFields } from "../../platform/errors.ts";
import { idPattern } from "../../platform/ids.ts";
import type { Queryable } from "../../platform/postgres/database.ts";
import { sessionGone } from "../../sessions/ended-session.ts";
import { isEnded } from "../../sessions/session-states.ts";
import { agentSessionEnd } from "./agent-session-message.ts";
import { type AgentSessionRow, findAgentSession } from "./store.ts";

export const agentSessionId = idPattern("agt");

/** Prefix of client names that only the service assigns. */
const reserved = "view:";

/** Returns an agent session of the caller, ended or not. Throws `not-found`. */
export async function findAny(db: Queryable, { principal }: Pick<Call, "principal">, id: string) {
  const row = agentSessionId.test(id) ? await findAgentSession(db, id, principal.accountId) : undefined;
  if (!row) throw fail("not-found", {}, { detail: "no agent session has this id" });
  return row;
}

/** Returns a running agent session of the caller. Throws `not-found`, or `session-destroyed` with the reason. */
export async function findRunning(
  db: Queryable,
  caller: Pick<Call, "principal">,
  id: string,
): Promise<AgentSessionRow> {
  const row = await findAny(db, caller, id);
  if (row.ended_at !== null || isEnded(row.status)) throw sessionGone(agentSessionEnd(row));
  return row;
}

/** Throws `pair-mode-invalid-transition` if the mode is `agent`, in which no person may take control. */
export function assertPairMode({ mode }: Pick<AgentSessionRow, "mode">): void {
  if (mode !== "agent") return;
  const detail = "in mode agent no person can take control: change the mode to pair first";
  throw fail("pair-mode-invalid-transition", { from: "agent", transition: "takeover" }, { detail });
}

/**
 * Returns the client name for taking and using control: the requested name, or else the identifier of the key or login.
 * Throws `validation-failed` if the requested name has the reserved prefix.
 */
export function agentClientId({ principal }: Pick<Call, "principal">, requested: string | undefined): string {
  if (requested?.startsWith(reserved))
    throw failFields("validation-failed", { client_id: `cannot begin with ${reserved}` });
  return requested ?? (principal.kind === "key" ? principal.keyId : principal.loginId);
}
