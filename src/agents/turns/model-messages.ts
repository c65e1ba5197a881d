import { randomUUID } from "node:crypto";
import type { AssistantModelMessage, ModelMessage, ToolModelMessage } from "ai";
import type { Sealer } from "../../platform/secrets/secrets-sealer.ts";

/** A call of a tool that the model has made. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
}

const contextOf = (accountId: string) => ({ accountId, purpose: "agent-message" });

/** Encrypts a message. Page content and the person's text are readable to the LLM provider only. */
export function sealMessage(sealer: Sealer, accountId: string, message: ModelMessage): Buffer {
  return sealer.seal(Buffer.from(JSON.stringify(message)), contextOf(accountId));
}

export function openMessage(sealer: Sealer, accountId: string, sealed: Buffer): ModelMessage {
  // Cast: only `sealMessage` writes this JSON.
  return JSON.parse(sealer.open(sealed, contextOf(accountId)).toString()) as ModelMessage;
}

const callsOf = ({ content }: AssistantModelMessage): ToolCall[] =>
  typeof content === "string"
    ? []
    : content.flatMap((part) =>
        part.type === "tool-call" ? { id: part.toolCallId, name: part.toolName, input: part.input } : [],
      );

const resultIdsOf = ({ content }: ToolModelMessage): string[] =>
  content.flatMap((part) => (part.type === "tool-result" ? part.toolCallId : []));

/** Tool calls without a result, in order. */
export function pendingToolCalls(messages: readonly ModelMessage[]): ToolCall[] {
  const done = new Set(messages.flatMap((message) => (message.role === "tool" ? resultIdsOf(message) : [])));
  return messages
    .flatMap((message) => (message.role === "assistant" ? callsOf(message) : []))
    .filter(({ id }) => !done.has(id));
}

/**
 * Replaces call identifiers that earlier messages already use. Some providers restart numbering in each response, so a
 * new call could be mistaken for an earlier call that has a result.
 */
export function withOwnIds(answer: readonly ModelMessage[], earlier: readonly ModelMessage[]): ModelMessage[] {
  const taken = new Set(
    earlier.flatMap((message) => (message.role === "assistant" ? callsOf(message) : [])).map(({ id }) => id),
  );
  const own = new Map<string, string>();
  const rename = (id: string): string => {
    own.set(id, taken.has(id) ? randomUUID() : id);
    taken.add(id);
    return own.get(id) ?? id;
  };
  return answer.map((message) => {
    if (message.role === "assistant" && typeof message.content !== "string") {
      const content = message.content.map((part) =>
        part.type === "tool-call" ? { ...part, toolCallId: rename(part.toolCallId) } : part,
      );
      return { ...message, content };
    }
    if (message.role !== "tool") return message;
    const content = message.content.map((part) =>
      part.type === "tool-result" ? { ...part, toolCallId: own.get(part.toolCallId) ?? part.toolCallId } : part,
    );
    return { ...message, content };
  });
}

type Output = Extract<ToolModelMessage["content"][number], { readonly type: "tool-result" }>["output"];

/** Text of a tool result, without its picture. */
function textOfOutput(output: Output): string {
  if (output.type === "text") return output.value;
  if (output.type !== "content") return "";
  return output.value.map((part) => (part.type === "text" ? part.text : "")).join("");
}

const textsOf = ({ role, content }: ModelMessage): string[] => {
  if (typeof content === "string") return [content];
  if (role !== "tool") return [];
  return content.flatMap((part) => (part.type === "tool-result" ? textOfOutput(part.output) : []));
};

/** Role and name of an element, from the last look that showed the element; never its value. */
export function describeElement(messages: readonly ModelMessage[], ref: string): string | undefined {
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

/** Minimum bytes per token of text (estimate). */
const bytesPerToken = 3;
/** Maximum tokens per picture (estimate). */
const tokensPerPicture = 2_000;

/** Upper bound of the tokens of a value; strings under the key `data` count as pictures. */
export function tokensOf(sent: unknown): number {
  let pictures = 0;
  const text = JSON.stringify(sent, (key, value) => {
    if (key !== "data" || typeof value !== "string") return value;
    pictures += 1;
    return "";
  });
  return Math.ceil(Buffer.byteLength(text) / bytesPerToken) + pictures * tokensPerPicture;
}

/** Start of every look at a page. */
export const pageMark = "<page ";

/** Text that replaces an old look. */
const folded = "<page folded: an older look, no longer valid>";

/**
 * Folding of old looks: at least `min` stay, and `step` are folded at a time, to keep the provider's cache valid.
 * Five sixths of the input of long turns comes from that cache. Eleven looks of 24 KiB stay below 100,000 tokens.
 */
const kept = { min: 2, step: 10 };

/** Builds the prompt: merges tool results of one response, and folds old looks. */
export function toPrompt(messages: readonly ModelMessage[]): ModelMessage[] {
  const merged: ModelMessage[] = [];
  for (const message of messages) {
    const last = merged.at(-1);
    if (last?.role === "tool" && message.role === "tool")
      merged[merged.length - 1] = { ...last, content: [...last.content, ...message.content] };
    else merged.push(message);
  }
  const snapshots = merged.reduce((count, message) => count + countSnapshots(message), 0);
  let foldable = Math.floor(Math.max(0, snapshots - kept.min) / kept.step) * kept.step;
  return merged.map((message) => {
    const here = countSnapshots(message);
    if (here === 0 || foldable <= 0) return message;
    foldable -= here;
    return fold(message);
  });
}

function countSnapshots(message: ModelMessage): number {
  if (message.role === "user") return typeof message.content === "string" && message.content.includes(pageMark) ? 1 : 0;
  if (message.role !== "tool") return 0;
  return message.content.filter((part) => part.type === "tool-result" && hasSnapshot(part.output)).length;
}

const hasSnapshot = (output: Output): boolean => textOfOutput(output).includes(pageMark);

const foldText = (text: string): string => text.slice(0, text.indexOf(pageMark)) + folded;

function fold(message: ModelMessage): ModelMessage {
  if (message.role === "user" && typeof message.content === "string")
    return { ...message, content: foldText(message.content) };
  if (message.role !== "tool") return message;
  const content = message.content.map((part) =>
    part.type === "tool-result" && hasSnapshot(part.output)
      ? { ...part, output: { type: "text" as const, value: foldText(textOfOutput(part.output)) } }
      : part,
  );
  return { ...message, content };
}
