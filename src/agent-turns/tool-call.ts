import { create, type JsonObject } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { AgentSessionPersonNeededEventSchema, TranscriptRole } from "../gen/pilothouse/v1/agent_turn_pb.ts";
import { asFailure, type Failure, failFields } from "../platform/errors.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { toProblem } from "../platform/problem.ts";
import { addEntry } from "../transcript/transcript.ts";
import { resultMessage, sealMessage, type ToolCall } from "./conversation.ts";
import { beginAction, hasWaitingMessages, insertMessage, type TurnRow, updateTurn } from "./store.ts";
import { endLockedTurn, ownerOf } from "./turn-end.ts";
import type { TurnParts } from "./turn-question.ts";
import type { Run } from "./turn-run.ts";

/** Seconds for which a person is waited for. */
const personWait = { usual: 600, longest: 3_600 };

/** Characters of what a model says of itself that are kept. */
const longestText = 32_768;

type Input = Readonly<Record<string, unknown>>;

const inputOf = ({ input }: ToolCall): Input => (typeof input === "object" && input !== null ? { ...input } : {});

function textOf(input: Input, name: string): string {
  const value = input[name];
  if (typeof value !== "string" || value === "") throw failFields("validation-failed", { [name]: "must be text" });
  // What PostgreSQL does not store no model needs.
  return value.replaceAll("\0", "").slice(0, longestText);
}

/** The actions on the page. Each leaves the model with a fresh look. */
const actions: Readonly<Record<string, (run: Run, input: Input, stepId: string) => Promise<void>>> = {
  look: async () => undefined,
  navigate: async (run, input, stepId) => run.page.navigate(run.caller(stepId), textOf(input, "url")),
  act: async (run, input, stepId) => run.page.act(run.caller(stepId), input.action),
};

/** Carries out a call of a tool, and commits what came of it. */
export async function doCall(parts: TurnParts, turn: TurnRow, run: Run, call: ToolCall): Promise<TurnRow> {
  try {
    if (call.name === "done") return await finish(parts, run, call);
    if (call.name === "ask_person") return await askPerson(parts, run, call);
  } catch (error) {
    const failure = asFailure(error);
    if (failure.slug !== "validation-failed") throw error;
    return run.write((tx, locked) => answer(parts, tx, locked, call, `failed: ${failure.message}`));
  }
  const action = actions[call.name];
  if (!action) return run.write((tx, locked) => answer(parts, tx, locked, call, "failed: there is no such tool"));
  return act(parts, turn, run, call, action);
}

async function answer(parts: TurnParts, tx: Tx, turn: TurnRow, call: ToolCall, text: string): Promise<TurnRow> {
  const sealed = sealMessage(parts.sealer, turn.account_id, resultMessage(call, text));
  await insertMessage(tx, { agentSessionId: turn.agent_session_id, turnId: turn.id, sealed });
  return turn;
}

/** Ends the turn, unless something was said meanwhile that the model has not read. */
function finish(parts: TurnParts, run: Run, call: ToolCall): Promise<TurnRow> {
  const text = textOf(inputOf(call), "text");
  return run.write(async (tx, turn) => {
    if (await hasWaitingMessages(tx, turn.agent_session_id))
      return answer(parts, tx, turn, call, "not ended: the person has said something more, which comes next");
    await answer(parts, tx, turn, call, "ended");
    return endLockedTurn(parts, tx, turn, { status: "done", text });
  });
}

function askPerson(parts: TurnParts, run: Run, call: ToolCall): Promise<TurnRow> {
  const { events, ids, clock } = parts;
  const input = inputOf(call);
  const instructions = textOf(input, "instructions");
  const asked = Number(input.timeout_seconds ?? personWait.usual);
  const seconds = asked > 0 ? Math.min(asked, personWait.longest) : personWait.usual;
  return run.write(async (tx, turn) => {
    const now = clock.now();
    const until = now + seconds * 1_000;
    const data = { agentSessionId: turn.agent_session_id, sessionId: turn.session_id, instructions };
    const event = create(AgentSessionPersonNeededEventSchema, { ...data, timeoutAt: timestampFromMs(until) });
    const owner = { accountId: turn.account_id, subject: turn.session_id };
    await events.append(tx, owner, AgentSessionPersonNeededEventSchema, event);
    const content = { case: "text" as const, value: { text: instructions } };
    const entry = { id: ids.next("evt"), turnId: turn.id, role: TranscriptRole.AGENT, content };
    await addEntry(tx, events, ownerOf(turn), entry, new Date(now));
    const changes = { status: "waiting_for_person" as const, reason: "person_needed", waits_until: new Date(until) };
    return updateTurn(tx, turn.id, changes);
  });
}

async function act(
  parts: TurnParts,
  turn: TurnRow,
  run: Run,
  call: ToolCall,
  action: (typeof actions)[string],
): Promise<TurnRow> {
  const { ids, events, clock, config } = parts;
  let stepId = "";
  await run.write(async (tx, locked) => {
    // One that has begun before is the same step: its session does it once.
    stepId = await beginAction(tx, turn.id, call.id, ids.next("evt"));
    return locked;
  });
  const begunAt = performance.now();
  const failure = await action(run, inputOf(call), stepId).then(() => undefined, readFailure(run));
  const durationMs = Math.round(performance.now() - begunAt);
  const look = await run.page.look(run.caller()).catch((error: unknown) => {
    const why = readFailure(run)(error);
    return `The page cannot be looked at: ${why.message}`;
  });
  const text = failure ? `failed: ${failure.slug}: ${failure.message}\n${look}` : `done\n${look}`;
  return run.write(async (tx, locked) => {
    await answer(parts, tx, locked, call, text);
    const error = failure && toProblem(failure, config.errorsBase, turn.id);
    const value = { name: call.name, arguments: shown(call), durationMs, ...(error && { error }) };
    const entry = { id: stepId, turnId: turn.id, role: TranscriptRole.AGENT };
    const content = { case: "action" as const, value };
    await addEntry(tx, events, ownerOf(turn), { ...entry, content }, new Date(clock.now()));
    const worked = String(Number(locked.worked_ms) + run.takeTime());
    return updateTurn(tx, turn.id, { worked_ms: worked });
  });
}

/** What an action fails with is for the model to read, but not what ends the turn. */
function readFailure({ signal }: Run) {
  return (error: unknown): Failure => {
    signal.throwIfAborted();
    const failure = asFailure(error);
    if (failure.slug === "session-destroyed") throw error;
    return failure;
  };
}

/** What an action is shown with: never what it types. */
function shown(call: ToolCall): JsonObject {
  const { action, url } = inputOf(call);
  if (typeof url === "string") return { url: url.slice(0, 2_000) };
  if (typeof action !== "object" || action === null) return {};
  const kept = Object.entries(action).filter(([name, value]) => name !== "text" && typeof value === "string");
  return Object.fromEntries(kept.map(([name, value]) => [name, String(value).slice(0, 500)]));
}
