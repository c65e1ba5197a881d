import type { JsonObject } from "@bufbuild/protobuf";
import { type AgentSession, AgentSessionService } from "../../src/gen/pilothouse/v1/agent_session_pb.ts";
import {
  AgentTurnService,
  type Turn,
  TurnStatus,
  TurnStatusSchema,
} from "../../src/gen/pilothouse/v1/agent_turn_pb.ts";
import { SessionStatus } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { enumNames } from "../../src/platform/rest-json/field-names.ts";
import { ownLabel } from "./session-tools.ts";
import { defineTool, progressOutput, sessionId, type ToolContext, type ToolResult, text } from "./tool.ts";

/** Maximum milliseconds that a tool call waits for a turn, an extraction, a page or a person. */
export const maxTurnWaitMs = 40_000;

/** Maximum bytes of a turn's text, and maximum characters of its output as JSON, in a tool result. */
const longestAnswer = 24_000;

/** Label of agent sessions that this server created for a browser session. Its value is the id of that session. */
const sessionLabel = "mcp_session";

const statusNames = enumNames(TurnStatusSchema);

const agentOutput = { ...progressOutput, text: { type: "string" }, output: { type: "object" } } as const;

/** Truncates an answer longer than `longestAnswer` bytes, and appends the endpoint that returns the full transcript. */
function shortAnswer(answer: string, agentId: string): string {
  const bytes = Buffer.from(answer);
  if (bytes.length <= longestAnswer) return answer;
  const rest = `(+${bytes.length - longestAnswer} bytes: GET /v1/agent-sessions/${agentId}/transcript has all)`;
  return `${bytes
    .subarray(0, longestAnswer)
    .toString()
    .replace(/\ufffd$/, "")} ${rest}`;
}

/** Describes a turn, and the call to make next. */
export function describeTurn(agentId: string, turn: Turn): ToolResult {
  const handle = `${agentId}/${turn.turnId}`;
  const { status, reason, error, output, steps, tokens, costCents } = turn;
  const isOver = status > TurnStatus.WAITING_FOR_PERSON;
  const readOutput = `GET /v1/agent-sessions/${agentId}/turns/${turn.turnId} has output, which is too long here`;
  const next = {
    [TurnStatus.QUEUED]: "call wait with this handle",
    [TurnStatus.RUNNING]: "call wait with this handle",
    [TurnStatus.WAITING_FOR_PERSON]:
      "call ask_person for a link, show it to the person, then call wait with this handle",
  };
  const structured: JsonObject = {
    status: isOver ? (statusNames.get(status) ?? "unknown") : (statusNames.get(status) ?? "running"),
    handle,
    steps,
    tokens,
    ...(costCents !== undefined && { cost_cents: costCents }),
    ...(reason !== undefined && { reason }),
    ...(error?.detail && { error: error.detail }),
    ...(turn.text !== undefined && { text: shortAnswer(turn.text, agentId) }),
    ...(output && (JSON.stringify(output).length <= longestAnswer ? { output } : { next: readOutput })),
    ...(!isOver && { next: next[status as keyof typeof next] ?? "call wait with this handle" }),
  };
  return { structured };
}

/** Returns the live agent session that an earlier call created for a browser session, if any. */
async function findAgent({ call }: ToolContext, id: string): Promise<AgentSession | undefined> {
  const query = { status: SessionStatus.LIVE, label: [`${sessionLabel}:${id}`], limit: 1 };
  return (await call(AgentSessionService.method.list, query)).data[0];
}

/** Waits up to 40 s for a turn to end. Cancels the turn if the client disconnects while waiting. */
async function waitFor(context: ToolContext, agentId: string, turnId: string): Promise<ToolResult> {
  try {
    const request = { id: agentId, turnId, waitMs: maxTurnWaitMs };
    return describeTurn(agentId, await context.call(AgentTurnService.method.getTurn, request));
  } finally {
    if (context.closed.aborted)
      await context.call(AgentTurnService.method.cancelTurn, { id: agentId, turnId }, { isKept: true });
  }
}

export const runAgentTool = defineTool({
  name: "run_agent",
  description:
    "Gives a task to our agent, which drives the session by itself (runtime chromium) with the account's model. Returns its answer, or after 40 s status running with a handle for wait. Later tasks of a session continue the conversation.",
  hints: { destructive: true },
  input: {
    ...sessionId,
    task: text("what to do, and when to stop"),
    model: text("Model for the session's agent; used only by the first task. Default: the account's model"),
    output_schema: { type: "object", description: "JSON Schema of the result in output" },
  },
  required: ["session_id", "task"],
  output: agentOutput,
  async run(context, { session_id: id, task, model, output_schema: outputSchema }) {
    const agent =
      (await findAgent(context, id)) ??
      (await context.call(AgentSessionService.method.create, {
        sessionId: id,
        labels: { ...ownLabel, [sessionLabel]: id },
        ...(model !== undefined && { model }),
      }));
    const message = { id: agent.id, text: task, ...(outputSchema && { outputSchema }) };
    const { turnId } = await context.call(AgentTurnService.method.sendMessage, message);
    return waitFor(context, agent.id, turnId);
  },
});

export const runRecipeTool = defineTool({
  name: "run_recipe",
  description:
    "Runs a stored recipe in a session (runtime chromium), or without session_id in a browser of its own. Returns its result, or after 40 s status running with a handle for wait.",
  hints: { destructive: true },
  input: {
    session_id: { type: "string" },
    recipe_id: text("rcp_..."),
    parameters: { type: "object", additionalProperties: { type: "string" } },
  },
  required: ["recipe_id"],
  output: { session_id: { type: "string" }, ...agentOutput },
  async run(context, { session_id: id, recipe_id: recipeId, parameters = {} }) {
    const earlier = id === undefined ? undefined : await findAgent(context, id);
    // A recipe must be the first turn of its agent session, so an idle earlier agent session is ended.
    if (earlier && earlier.runningTurnId === undefined)
      await context.call(AgentSessionService.method.destroy, { id: earlier.id });
    const agent = await context.call(AgentSessionService.method.create, {
      recipeId,
      recipeParameters: parameters,
      labels: { ...ownLabel, ...(id !== undefined && { [sessionLabel]: id }) },
      ...(id !== undefined && { sessionId: id }),
    });
    const { structured } = await waitFor(context, agent.id, agent.runningTurnId ?? "");
    return { structured: { session_id: agent.sessionId, ...structured } };
  },
});
