import type { AssistantModelMessage, ModelMessage, ToolModelMessage } from "ai";
import type { Tx } from "../../platform/postgres/database.ts";
import type { Sealer } from "../../platform/secrets/secrets-sealer.ts";
import { insertMessage, type TurnRow } from "./store.ts";

/** A tool call in a response of the model. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
}

/** A message of a conversation. `isNote`: the service wrote this user message, not the person. */
export type ConversationMessage = ModelMessage & { readonly isNote?: true };

const contextOf = (accountId: string) => ({ accountId, purpose: "agent-message" });

/** Encrypts a message, because it contains page content and the person's text. */
export function sealMessage(sealer: Sealer, accountId: string, message: ConversationMessage): Buffer {
  return sealer.seal(Buffer.from(JSON.stringify(message)), contextOf(accountId));
}

/** Encrypts a message and appends it to the conversation of a turn. */
export function addMessage(
  { sealer }: { readonly sealer: Sealer },
  tx: Tx,
  { id, account_id, agent_session_id }: TurnRow,
  message: ConversationMessage,
): void {
  const sealed = sealMessage(sealer, account_id, message);
  insertMessage(tx, { agentSessionId: agent_session_id, turnId: id, sealed });
}

export function openMessage(sealer: Sealer, accountId: string, sealed: Buffer): ConversationMessage {
  // Cast: only `sealMessage` writes this JSON.
  return JSON.parse(sealer.open(sealed, contextOf(accountId)).toString()) as ConversationMessage;
}

/** Creates a message of the service to the model. */
export const noteMessage = (text: string): ConversationMessage => ({
  role: "user",
  content: `[The service tells you] ${text}`,
  isNote: true,
});

export const callsOf = ({ content }: AssistantModelMessage): ToolCall[] =>
  typeof content === "string"
    ? []
    : content.flatMap((part) =>
        part.type === "tool-call" ? { id: part.toolCallId, name: part.toolName, input: part.input } : [],
      );

export const resultIdsOf = ({ content }: ToolModelMessage): string[] =>
  content.flatMap((part) => (part.type === "tool-result" ? part.toolCallId : []));

/** Returns whether any tool call in these messages has no result among the messages. */
export const hasOpenCalls = (messages: readonly ModelMessage[]): boolean => {
  const done = new Set(messages.flatMap((message) => (message.role === "tool" ? resultIdsOf(message) : [])));
  return messages.some((message) => message.role === "assistant" && callsOf(message).some(({ id }) => !done.has(id)));
};

type Output = Extract<ToolModelMessage["content"][number], { readonly type: "tool-result" }>["output"];

/** Text of a tool result, without its picture. */
export function textOfOutput(output: Output): string {
  if (output.type === "text") return output.value;
  if (output.type !== "content") return "";
  return output.value.map((part) => (part.type === "text" ? part.text : "")).join("");
}

export const textsOf = ({ role, content }: ModelMessage): string[] => {
  if (typeof content === "string") return [content];
  if (role !== "tool") return [];
  return content.flatMap((part) => (part.type === "tool-result" ? textOfOutput(part.output) : []));
};

/** Role and name of an element, from the last message that shows the element; never its value. */
export function describeIn(messages: readonly ModelMessage[], ref: string): string | undefined {
  if (!/^s\d+e\d+$/.test(ref)) return undefined;
  const line = new RegExp(`^ *[-*] (\\w+(?: "(?:[^"\\\\]|\\\\.)*")?) ref=${ref}\\b`, "m");
  for (const message of messages.toReversed()) {
    const element = textsOf(message).map((text) => line.exec(text)?.[1]);
    const found = element.find((each) => each !== undefined);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Creates the result message of a call, with a JPEG picture if given. */
export function resultMessage({ id, name }: ToolCall, text: string, picture?: Uint8Array): ToolModelMessage {
  const data = picture && { type: "data" as const, data: Buffer.from(picture).toString("base64") };
  const shown = data && { type: "file" as const, mediaType: "image/jpeg", data };
  const output: Output = shown
    ? { type: "content", value: [{ type: "text", text }, shown] }
    : { type: "text", value: text };
  return { role: "tool", content: [{ type: "tool-result", toolCallId: id, toolName: name, output }] };
}

/**
 * Moves the pictures of results into a user message after the results: an OpenAI-compatible provider would receive the
 * picture of a result as text.
 */
export function withPicturesApart(messages: readonly ModelMessage[]): ModelMessage[] {
  return messages.flatMap((message): ModelMessage[] => {
    if (message.role !== "tool") return [message];
    const files = message.content.flatMap((part) =>
      part.type === "tool-result" && part.output.type === "content"
        ? part.output.value.filter((each) => each.type === "file")
        : [],
    );
    if (files.length === 0) return [message];
    const content = message.content.map((part) =>
      part.type === "tool-result" && part.output.type === "content"
        ? { ...part, output: { type: "text" as const, value: textOfOutput(part.output) } }
        : part,
    );
    return [
      { ...message, content },
      { role: "user", content: files.map(({ data, mediaType }) => ({ type: "file" as const, data, mediaType })) },
    ];
  });
}

/** Minimum bytes per token of text (estimate). */
const bytesPerToken = 3;
/** Maximum tokens per picture (estimate). */
const tokensPerPicture = 2_000;

/** Estimated upper bound of the tokens of a value. Strings under the key `data` count as pictures. */
export function tokensOf(sent: unknown): number {
  let pictures = 0;
  const text = JSON.stringify(sent, (key, value) => {
    if (key !== "data" || typeof value !== "string") return value;
    pictures += 1;
    return "";
  });
  return Math.ceil(Buffer.byteLength(text) / bytesPerToken) + pictures * tokensPerPicture;
}

/** Start of the text of every observation, up to the first brace of its JSON head. */
export const pageMark = "<page {";
