import { StartRefused } from "../../src/platform/start-refused.ts";
import { readEventStream } from "../listen/event-stream.ts";
import { callService } from "../run-command.ts";

/** Instruction and target of an agent. */
export interface AgentRun {
  readonly service: string;
  readonly key: string;
  readonly text: string;
  /** Model, such as `anthropic/claude-haiku-4-5`. Default: the model of the account. */
  readonly model: string | undefined;
  /** LLM key for this turn only. */
  readonly llmKey: string | undefined;
  print(line: string): void;
}

// biome-ignore lint/suspicious/noExplicitAny: responses of the service, whose shapes its OpenAPI document defines.
type Json = any;

const llmKeyHint =
  "Set LLM_KEY to a key of your own for this turn (and LLM_MODEL, such as anthropic/claude-haiku-4-5), or store one with " +
  "PUT /v1/account/me/byok-llm-key";

/** Formats a transcript entry as one line. */
function lineOf({ role, content }: Json): string {
  if (content.kind === "text") return `${role}: ${content.text}`;
  if (content.kind === "control") return `${role}: ${content.control.state}`;
  const failed = content.error ? ` failed: ${content.error.detail ?? content.error.title}` : "";
  return `${role}: ${content.name} ${JSON.stringify(content.arguments ?? {})} (${content.duration_ms} ms)${failed}`;
}

/** Runs one turn, prints its steps, and ends its session. Returns whether the agent answered. */
export async function runAgent(run: AgentRun, signal: AbortSignal): Promise<boolean> {
  const { service, key, text, model, llmKey, print } = run;
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const call = async (method: string, path: string, body?: object, more: Record<string, string> = {}) => {
    const init = { method, headers: { ...headers, ...more }, ...(body && { body: JSON.stringify(body) }) };
    const response = await callService(service, path, init);
    const answer: Json = response.status === 204 ? {} : await response.json().catch(() => ({}));
    if (response.ok) return answer;
    const { title = response.statusText, detail = "", type = "" } = answer;
    const hint = type.endsWith("/byok-llm-required") ? `. ${llmKeyHint}` : "";
    throw new StartRefused(`${service}${path} answered ${response.status}: ${title}: ${detail}${hint}`);
  };
  const agent = await call("POST", "/v1/agent-sessions", { ...(model !== undefined && { model }) });
  const path = `/v1/agent-sessions/${agent.id}`;
  try {
    const link = await call("POST", `/v1/sessions/${agent.session_id}/view-links`, { control: true });
    print(`Watch it, and take control, at ${link.url}`);
    const events = await callService(service, `${path}/events`, { headers, signal });
    if (!events.body) throw new StartRefused("the service tells nothing of the agent");
    const turn = await call(
      "POST",
      `${path}/message`,
      { text },
      llmKey === undefined ? {} : { "x-byok-llm-api-key": llmKey },
    );
    for await (const { type, data } of readEventStream(events.body, () => undefined)) {
      const told: Json = JSON.parse(data).data;
      if (type === "agent_session.transcript_entry_added") print(lineOf(told.entry));
      if (type !== "agent_session.turn_ended" || told.turn.turn_id !== turn.turn_id) continue;
      const { status, reason, error } = told.turn;
      if (status !== "done") print(`The turn ended ${status}: ${error?.detail ?? reason ?? ""}`);
      return status === "done";
    }
    return false;
  } finally {
    await call("DELETE", path).catch(() => undefined);
  }
}
