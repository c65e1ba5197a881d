import type { Control } from "../../gen/pilothouse/v1/session_pb.ts";
import type { Call } from "../../kernel/call.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import { callerOf } from "../../sessions/commands/session-caller.ts";
import type { Controls } from "../../sessions/control/control.ts";
import type { ControlRow } from "../../sessions/control/store.ts";
import { toControlMessage } from "../../sessions/session-control.ts";
import type { Sessions } from "../../sessions/sessions.ts";
import { assertPairMode } from "./agent-sessions.ts";
import { type AgentSessionRow, findAgentSession } from "./store.ts";

export interface ControlChange {
  readonly transition: "takeover" | "handback";
  readonly call: Call;
  readonly clientId: string;
  /** Commits the change with its response. */
  commit(run: (tx: Tx) => Promise<Control>): Promise<Control>;
  /** Locks the session and returns its row. `agent` is undefined if the lock does not read the agent session. */
  lock(tx: Tx): Promise<{ readonly row: ControlRow; readonly agent?: AgentSessionRow }>;
  /** Records the change in the audit log. Not called if the client only renewed its control. */
  audit(tx: Tx, row: ControlRow): void;
}

/**
 * Takes control or hands it back. Resolves when the worker has applied the change. Throws `pair-mode-conflict` or
 * `pair-mode-invalid-transition`.
 */
export async function changeControl(
  { sessions, controls }: { readonly sessions: Pick<Sessions, "notifyControl">; readonly controls: Controls },
  { transition, call, clientId, commit, lock, audit }: ControlChange,
): Promise<Control> {
  let sessionId = "";
  async function take(tx: Tx, row: ControlRow, known: AgentSessionRow | undefined) {
    const { agent_session_id: agentId, account_id: accountId } = row;
    const agent = known ?? (agentId === null ? undefined : await findAgentSession(tx, agentId, accountId));
    if (agent) assertPairMode(agent);
    return controls.take(tx, row, clientId);
  }
  const control = await commit(async (tx) => {
    const { row, agent } = await lock(tx);
    sessionId = row.id;
    const { row: changed, isRenewal } =
      transition === "takeover"
        ? await take(tx, row, agent)
        : { row: await controls.handBack(tx, row, clientId), isRenewal: false };
    if (isRenewal) call.markUnchanged();
    else audit(tx, row);
    return toControlMessage(changed);
  });
  await sessions.notifyControl(callerOf(call), sessionId);
  return control;
}
