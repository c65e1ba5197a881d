import { create, type JsonObject } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { addEntry } from "../../events/transcript.ts";
import { AgentSessionPersonNeededEventSchema, TranscriptRole } from "../../gen/pilothouse/v1/agent_turn_pb.ts";
import { asFailure, Failure, fail, failFields } from "../../platform/errors.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import { toProblem } from "../../platform/problem.ts";
import { unknownIn } from "../prompts/tools.ts";
import { extract, readExtractionSchema } from "./extract.ts";
import type { ModelConversation } from "./model-conversation.ts";
import { addMessage, resultMessage, type ToolCall } from "./model-messages.ts";
import { escapePageMarkers, type ToolOutcome } from "./page.ts";
import { beginAction, findTurn, hasWaitingMessages, type TurnRow, updateTurn } from "./store.ts";
import { endLockedTurn, endOfAnswer, entryOf, ownerOf } from "./turn-end.ts";
import { noteMisfit, readOutput } from "./turn-output.ts";
import type { Run, TurnParts } from "./turn-parts.ts";

/** Seconds to wait for a person: default and maximum. */
const personWaitSeconds = { default: 600, max: 3_600 };

/** Maximum characters of a text in a tool call. The rest is dropped. */
const longestText = 32_768;
/** Maximum characters of a text to find. The rest is dropped. */
const longestFind = 200;
/** Maximum characters of a reference. The rest is dropped. */
const longestRef = 32;

/** Maximum number of actions shown of a call; no call runs more actions. */
const maxShown = 20;

type Input = Readonly<Record<string, unknown>>;

const inputOf = ({ input }: ToolCall): Input => (typeof input === "object" && input !== null ? { ...input } : {});

function textOf(input: Input, name: string): string {
  const value = input[name];
  if (typeof value !== "string" || value === "") throw failFields("validation-failed", { [name]: "must be text" });
  return plain(value, longestText);
}

/** Element to read from, and the offset to start at. */
function partOf(input: Input): { readonly ref?: string; readonly offset?: number } {
  const ref = input.ref === undefined ? {} : { ref: textOf(input, "ref").slice(0, longestRef) };
  const offset = Number(input.offset ?? 0);
  return { ...ref, ...(Number.isSafeInteger(offset) && offset > 0 && { offset }) };
}

/**
 * Returns the `actions` of an `act` call. Throws `validation-failed` if there are none, or if an action has an unknown
 * field.
 */
function actionsOf({ actions }: Input): readonly unknown[] {
  if (!Array.isArray(actions) || actions.length === 0)
    throw failFields("validation-failed", { actions: "is required" });
  const unknown = actions.map(unknownIn).find((name) => name !== undefined);
  if (unknown !== undefined)
    throw failFields("validation-failed", { [unknown]: "is not known: act by ref, or by x and y" });
  return actions;
}

interface ActionContext {
  readonly parts: TurnParts;
  readonly turn: TurnRow;
  readonly run: Run;
  readonly input: Input;
  readonly stepId: string;
}

type Action = (context: ActionContext) => Promise<ToolOutcome>;

/** Tools that read the page or act on the page, by name. */
const actions: Readonly<Record<string, Action>> = {
  async observe({ run: { page, caller }, input, turn: { vision } }) {
    const find = input.find === undefined ? {} : { find: textOf(input, "find").slice(0, longestFind) };
    const marks = input.marks === true;
    const screenshot = input.picture === true || marks;
    if (screenshot && !vision)
      throw failFields("validation-failed", { picture: "is not available, because the model accepts no pictures" });
    const options = { isWhole: input.whole === true, screenshot, marks, ...find, ...partOf(input) };
    return { outcome: "done", seen: await page.observe(caller(), options) };
  },
  navigate: async ({ run: { page, caller }, input, stepId }) => page.navigate(caller(stepId), textOf(input, "url")),
  act: async ({ run: { page, caller }, input, stepId }) => page.act(caller(stepId), actionsOf(input)),
  async extract({ parts, turn, run, input }) {
    const schema = await readExtractionSchema(input.schema);
    const optional = (name: string) => (input[name] === undefined ? undefined : textOf(input, name));
    return extract(parts, turn, run, { schema, instructions: optional("instructions"), ref: optional("ref") });
  },
  async read({ run: { page, caller }, input }) {
    const { text } = await page.read(caller(), partOf(input));
    return { outcome: "done", seen: undefined, text };
  },
};

/** Runs a tool call. The result is committed before the next transaction of the run. */
export async function runToolCall(
  parts: TurnParts,
  turn: TurnRow,
  run: Run,
  conversation: ModelConversation,
  call: ToolCall,
): Promise<TurnRow> {
  try {
    if (call.name === "done") return await finish(parts, turn.output_schema, run, call);
    if (call.name === "ask_person") return await askPerson(parts, run, call);
  } catch (error) {
    const failure = asFailure(error);
    if (failure.slug !== "validation-failed") throw error;
    return run.write((tx, locked) => addToolResult(parts, tx, locked, call, `failed: ${failure.message}`));
  }
  const action = actions[call.name];
  if (!action)
    return run.write((tx, locked) => addToolResult(parts, tx, locked, call, "failed: there is no such tool"));
  const elementFor = (ref: string): string | undefined => conversation.describeElement(ref);
  return act(parts, turn, run, conversation, { ...call, action, shown: shown(call, elementFor) });
}

/** Adds the result of a call to the conversation. */
export async function addToolResult(
  parts: TurnParts,
  tx: Tx,
  turn: TurnRow,
  call: ToolCall,
  text: string,
  picture?: Uint8Array,
): Promise<TurnRow> {
  addMessage(parts, tx, turn, resultMessage(call, text, picture));
  return turn;
}

/**
 * Ends the turn, unless the result does not match the schema, or the person has sent messages that the model has not
 * read.
 */
async function finish(parts: TurnParts, schema: JsonObject | null, run: Run, call: ToolCall): Promise<TurnRow> {
  const { text: said, result } = inputOf(call);
  const text = textOf({ text: said }, "text");
  const { output, misfit } = await readOutput(schema, result);
  return run.write(async (tx, turn) => {
    if (await hasWaitingMessages(tx, turn.agent_session_id))
      return addToolResult(parts, tx, turn, call, "not ended: the person has sent another message, which comes next");
    if (misfit !== undefined) {
      await addToolResult(parts, tx, turn, call, `not ended: ${escapePageMarkers(misfit)}`);
      return noteMisfit(parts, tx, turn, misfit);
    }
    await addToolResult(parts, tx, turn, call, "ended");
    return endLockedTurn(parts, tx, turn, { ...endOfAnswer(turn, text), ...(output && { output }) });
  });
}

function askPerson(parts: TurnParts, run: Run, call: ToolCall): Promise<TurnRow> {
  const { events, ids, clock } = parts;
  const input = inputOf(call);
  const instructions = textOf(input, "instructions");
  const requested = Number(input.timeout_seconds ?? personWaitSeconds.default);
  const seconds = requested > 0 ? Math.min(requested, personWaitSeconds.max) : personWaitSeconds.default;
  return run.write(async (tx, turn) => {
    const now = clock.now();
    const until = now + seconds * 1_000;
    const data = { agentSessionId: turn.agent_session_id, sessionId: turn.session_id, instructions };
    const event = create(AgentSessionPersonNeededEventSchema, { ...data, timeoutAt: timestampFromMs(until) });
    const owner = { accountId: turn.account_id, subject: turn.session_id };
    await events.append(tx, owner, AgentSessionPersonNeededEventSchema, event);
    const content = { case: "text" as const, value: { text: instructions } };
    const entry = { id: ids.next("evt"), ...entryOf(turn), role: TranscriptRole.AGENT, content };
    await addEntry(tx, events, ownerOf(turn), entry, new Date(now));
    const changes = {
      status: "waiting_for_person" as const,
      reason: "person_needed",
      waits_until: new Date(until),
      waiting_since: new Date(now),
    };
    return updateTurn(tx, turn.id, changes);
  });
}

async function act(
  parts: TurnParts,
  turn: TurnRow,
  run: Run,
  conversation: ModelConversation,
  call: ToolCall & { readonly action: Action; readonly shown: JsonObject },
): Promise<TurnRow> {
  const { ids, events, clock, config } = parts;
  // If another gateway resumes the step, the identifier is the same, so that the session does not run the step twice.
  const stepId = await beginAction(parts.db, turn.id, call.id, ids.next("evt"));
  const begunAt = performance.now();
  const addActionEntry = (tx: Tx, of: TurnRow, durationMs: number, failure: Failure | undefined) => {
    const error = failure && toProblem(failure, config.errorsBase, turn.id);
    const screenshotPath = `/v1/agent-sessions/${turn.agent_session_id}/steps/${stepId}/screenshot`;
    const value = {
      name: call.name,
      arguments: call.shown,
      durationMs,
      ...(error && { error }),
      // The worker takes screenshots only before navigations and interactions.
      ...((call.name === "navigate" || call.name === "act") && { screenshotPath }),
    };
    const entry = { id: stepId, ...entryOf(of), role: TranscriptRole.AGENT };
    const content = { case: "action" as const, value };
    return addEntry(tx, events, ownerOf(turn), { ...entry, content }, new Date(clock.now()));
  };
  const took = (): number => Math.round(performance.now() - begunAt);
  const done = await call.action({ parts, turn, run, input: inputOf(call), stepId }).catch(async (error: unknown) => {
    const interruption = await findInterruption(parts, turn, run, error);
    if (interruption) await parts.db.transaction((tx) => addActionEntry(tx, turn, took(), interruption));
    return readFailure(run)(error);
  });
  const durationMs = took();
  const failure = done instanceof Failure ? done : undefined;
  const { outcome, seen, text: replacement } = done instanceof Failure ? failed(done) : done;
  const described = replacement === undefined ? run.page.describe(run.caller(), seen) : Promise.resolve(replacement);
  const page = await described.catch(async (error: unknown) => {
    if (await findInterruption(parts, turn, run, error))
      await parts.db.transaction((tx) => addActionEntry(tx, turn, durationMs, failure));
    return `The page could not be observed: ${escapePageMarkers(readFailure(run)(error).message)}`;
  });
  const picture = seen?.picture;
  const size = picture ? `: the picture is ${picture.width} by ${picture.height} pixels` : "";
  const text = `${outcome}${size}\n${page}`;
  const times = {
    worked_ms: String(Number(turn.worked_ms) + run.takeElapsedMs()),
    settling_ms: String(Number(turn.settling_ms) + (seen?.settlingMs ?? 0)),
  };
  // The model is called while the result is committed. After a crash before the commit, a retry gets the same result
  // from the session.
  conversation.add(conversation.position + 1, resultMessage(call, text, picture?.data));
  run.writeBehind(async (tx, locked) => {
    await addToolResult(parts, tx, locked, call, text, picture?.data);
    await addActionEntry(tx, locked, durationMs, failure);
    return updateTurn(tx, turn.id, times);
  });
  return { ...turn, ...times };
}

/** Describes the page. If that fails, returns a sentence that reports it. Rethrows errors that end the turn. */
export function describePageOrFailure(run: Run): Promise<string> {
  return run.page.describe(run.caller()).catch((error: unknown) => {
    readFailure(run)(error);
    return "It could not be observed.";
  });
}

/**
 * Returns the failure to record if the turn or session ended during an action; undefined otherwise. Without this entry
 * the transcript would not show that the action started.
 */
async function findInterruption({ db }: TurnParts, { id }: TurnRow, { signal }: Run, error: unknown) {
  const failure = asFailure(error);
  if (failure.slug === "session-destroyed") return failure;
  // If the turn has not ended, another gateway resumes it and records the step.
  if (!signal.aborted || (await findTurn(db, id))?.ended_at === null) return undefined;
  const detail = "the turn ended during the action; whether the action was carried out is unknown";
  return fail("driver-error", {}, { detail });
}

const failed = ({ slug, message }: Failure): ToolOutcome => ({
  outcome: `failed: ${slug}: ${escapePageMarkers(message)}`,
  seen: undefined,
});

/** Returns a function that converts an error of an action into a failure, and rethrows errors that end the turn. */
export function readFailure({ signal }: Run) {
  return (error: unknown): Failure => {
    signal.throwIfAborted();
    const failure = asFailure(error);
    if (failure.slug === "session-destroyed") throw error;
    return failure;
  };
}

/** Returns the arguments of a call for display. Adds the element of each reference, and omits typed text. */
function shown(call: ToolCall, elementFor: (ref: string) => string | undefined): JsonObject {
  const { url, find, instructions, actions } = inputOf(call);
  if (typeof url === "string") return { url: plain(url, 2_000) };
  if (typeof instructions === "string") return { instructions: plain(instructions, 500) };
  if (typeof find === "string") return { find: plain(find, longestFind) };
  if (!Array.isArray(actions)) return {};
  return {
    actions: actions.slice(0, maxShown).map((action: unknown) => {
      const fields = shownFields(action);
      const element = fields.ref === undefined ? undefined : elementFor(fields.ref);
      return { ...fields, ...(element !== undefined && { element }) };
    }),
  };
}

/** Truncates a text, removes NUL and replaces unpaired surrogates, because PostgreSQL stores neither. */
const plain = (text: string, length: number): string => text.replaceAll("\0", "").slice(0, length).toWellFormed();

/** Typed text is hidden, including a key that produces a character. */
const isShown = ([name, value]: [string, unknown]): boolean =>
  (typeof value === "string" && name !== "text" && !(name === "key" && value.length === 1)) ||
  typeof value === "number";

const shownFields = (action: unknown): Record<string, string> =>
  typeof action === "object" && action !== null
    ? Object.fromEntries(
        Object.entries(action)
          .filter(isShown)
          .map(([name, value]) => [name, plain(String(value), 500)]),
      )
    : {};
