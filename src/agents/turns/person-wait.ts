import { sleep } from "../../platform/bounded-wait.ts";
import type { ControlRow } from "../../sessions/control/store.ts";
import { addMessage, noteMessage, resultMessage } from "./model-messages.ts";
import { findTurn, type TurnRow, updateTurn } from "./store.ts";
import { afterWait } from "./turn-message.ts";
import type { Run, TurnParts } from "./turn-parts.ts";

/** Milliseconds between checks while a turn waits for a person. */
const pollEvery = 500;

/** Marks the turn as waiting for a person. If it is marked already, sleeps for one poll interval. Returns the turn. */
async function waitForPerson(parts: TurnParts, turn: TurnRow, run: Run, reason: string): Promise<TurnRow | undefined> {
  if (turn.status !== "waiting_for_person") {
    const calls = (await run.conversation()).pending;
    // The memory is freed, because a person may take long.
    run.dropConversation();
    return run.write(async (tx) => {
      const text = "not done, or not to its end: a person has taken over";
      for (const call of calls) addMessage(parts, tx, turn, resultMessage(call, text));
      const waiting = { status: "waiting_for_person", reason, waiting_since: new Date(parts.clock.now()) } as const;
      return updateTurn(tx, turn.id, waiting);
    });
  }
  await sleep(pollEvery, run.signal);
  run.takeElapsedMs();
  run.signal.throwIfAborted();
  return findTurn(parts.db, turn.id);
}

/**
 * Resumes after a wait for a person. Open calls of `ask_person` get the result `note`. Other open calls are reported as
 * not done.
 */
async function resumeTurn(parts: TurnParts, turn: TurnRow, run: Run, epoch: string, note: string): Promise<TurnRow> {
  const calls = (await run.conversation()).pending;
  const page = await run.page.describe(run.caller());
  run.takeElapsedMs();
  return run.write(async (tx, locked) => {
    for (const call of calls) {
      const text = call.name === "ask_person" ? note : `not done, or not to its end: ${note}`;
      addMessage(parts, tx, turn, resultMessage(call, text));
    }
    addMessage(parts, tx, turn, noteMessage(`${note} The page is now:\n${page}`));
    const waited = afterWait(locked, parts.clock.now());
    const changes = { status: "running" as const, reason: null, waits_until: null, control_epoch: epoch, ...waited };
    return updateTurn(tx, turn.id, changes);
  });
}

/**
 * If a person has control or is needed, marks the turn as waiting, or sleeps for one poll interval if it is marked
 * already. If the wait is over, resumes the turn. Returns "continue" if the next step can run, otherwise the turn.
 */
export async function yieldToPerson(
  parts: TurnParts,
  turn: TurnRow,
  run: Run,
  control: ControlRow,
): Promise<TurnRow | undefined | "continue"> {
  const { control_holder: holder, control_epoch: epoch } = control;
  if (holder !== null) return waitForPerson(parts, turn, run, "takeover");
  if (control.status === "paused") return waitForPerson(parts, turn, run, "challenge");
  if (turn.control_epoch !== null && turn.control_epoch !== epoch)
    return resumeTurn(parts, turn, run, epoch, "A person had control, and has handed it back.");
  if (turn.waits_until !== null) {
    if (parts.clock.now() >= turn.waits_until.getTime())
      return resumeTurn(parts, turn, run, epoch, "No person has come in time.");
    return waitForPerson(parts, turn, run, "person_needed");
  }
  if (turn.status === "waiting_for_person")
    return resumeTurn(parts, turn, run, epoch, "What a person was needed for is over.");
  return "continue";
}
