import type { Call } from "../../kernel/call.ts";
import { fail, failFields } from "../../platform/errors.ts";
import { idPattern } from "../../platform/ids.ts";
import type { Queryable } from "../../platform/postgres/database.ts";
import { sessionGone } from "../../sessions/ended-session.ts";
import { isEnded } from "../../sessions/session-states.ts";
import { endOf } from "./agent-session-message.ts";
import { type AgentSessionRow, findAgentSession } from "./store.ts";

export const agentSessionId = idPattern("agt");

/** Names of clients that only the service gives itself. */
const reserved = "view:";

/** Finds an agent session of the caller, ended or not. Throws `not-found`. */
export async function findAny(db: Queryable, { principal }: Pick<Call, "principal">, id: string) {
  const row = agentSessionId.test(id) ? await findAgentSession(db, id, principal.accountId) : undefined;
  if (!row) throw fail("not-found", {}, { detail: "no agent session has this id" });
  return row;
}

/** The same for one that must not have ended: throws `session-destroyed` with how it did. */
export async function findRunning(
  db: Queryable,
  caller: Pick<Call, "principal">,
  id: string,
): Promise<AgentSessionRow> {
  const row = await findAny(db, caller, id);
  if (row.ended_at !== null || isEnded(row.status)) throw sessionGone(endOf(row));
  return row;
}

/** Throws while the agent works alone: nobody takes over from it then. */
export function assertTakesTurns({ mode }: Pick<AgentSessionRow, "mode">): void {
  if (mode !== "agent") return;
  const detail = "the agent works alone: change the mode to pair first";
  throw fail("pair-mode-invalid-transition", { from: "agent", transition: "takeover" }, { detail });
}

/** The name under which a client takes and uses control: the one that it says, else that of its bearer. */
export function clientIdOf({ principal }: Pick<Call, "principal">, said: string | undefined): string {
  if (said?.startsWith(reserved)) throw failFields("validation-failed", { client_id: `cannot begin with ${reserved}` });
  return said ?? (principal.kind === "key" ? principal.keyId : principal.loginId);
}
