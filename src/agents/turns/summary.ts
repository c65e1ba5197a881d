import type { ModelMessage } from "ai";
import type { Sealer } from "../../platform/secrets/secrets-sealer.ts";
import { summaryPrompt } from "../prompts/side-prompts.ts";
import { callModel, charge } from "./model-call.ts";
import type { ModelConversation, OldPart } from "./model-conversation.ts";
import { textOfOutput } from "./model-messages.ts";
import { insertSummary, type TurnRow } from "./store.ts";
import { endLockedTurn } from "./turn-end.ts";
import type { Run, TurnParts } from "./turn-parts.ts";

/** Maximum characters of a summary, and of a message to summarise. */
const longest = { summary: 8_000, message: 4_000 };

const contextOf = (accountId: string) => ({ accountId, purpose: "agent-summary" });

export const openSummary = (sealer: Sealer, accountId: string, sealed: Buffer): string =>
  sealer.open(sealed, contextOf(accountId)).toString();

function lineOf({ role, content }: ModelMessage): string {
  const text = typeof content === "string" ? content : content.map(partText).join(" ");
  return `${role}: ${text}`.slice(0, longest.message);
}

type Part = Exclude<ModelMessage["content"], string>[number];

/** Returns the text of a part of a message; empty for pictures and for data that only the provider reads. */
function partText(part: Part): string {
  if (part.type === "text") return part.text;
  if (part.type === "tool-call") return `${part.toolName} ${JSON.stringify(part.input)}`;
  return part.type === "tool-result" ? textOfOutput(part.output) : "";
}

/**
 * Asks the model to summarise the older part of the conversation, and commits the summary. Ends the turn if the model
 * call fails. Returns the changed turn.
 */
export async function summarizeOldPart(
  parts: TurnParts,
  turn: TurnRow,
  run: Run,
  conversation: ModelConversation,
  { position, messages }: OldPart,
): Promise<TurnRow> {
  const content = `The earlier part of the work:\n${messages.map(lineOf).join("\n")}`;
  const request = { system: summaryPrompt, messages: [{ role: "user" as const, content }], tools: {} };
  const response = await callModel(parts, turn, run, request);
  if ("end" in response) return run.write((tx, locked) => endLockedTurn(parts, tx, locked, response.end));
  const text = response.text.slice(0, longest.summary);
  const sealed = parts.sealer.seal(Buffer.from(text), contextOf(turn.account_id));
  const summarized = await run.write(async (tx, locked) => {
    await insertSummary(tx, { agentSessionId: turn.agent_session_id, turnId: turn.id, position, sealed });
    return charge(parts, tx, locked, run, response, 0);
  });
  conversation.addSummary(position, text);
  return summarized;
}
