import { randomUUID } from "node:crypto";
import type { AssistantModelMessage, ModelMessage, ToolModelMessage } from "ai";
import {
  type ConversationMessage,
  callsOf,
  describeIn,
  noteMessage,
  pageMark,
  resultIdsOf,
  type ToolCall,
  textOfOutput,
  textsOf,
  tokensOf,
} from "./model-messages.ts";

/** A message of the next request, and its estimated tokens. */
interface Entry {
  readonly message: ConversationMessage;
  readonly tokens: number;
}

/** A message of the person that the model has not received yet, and that therefore has no position. */
export interface WaitingMessage {
  readonly id: string;
  readonly message: ConversationMessage;
}

/** The older part of a conversation, to be replaced by a summary. */
export interface OldPart {
  /** Position of the last message of the conversation. */
  readonly position: number;
  readonly messages: readonly ModelMessage[];
}

/**
 * Estimated tokens of a request above which its older part is folded: old pages are removed, and old results shortened.
 * Between two foldings, each request extends the previous request, so that providers read the previous request from
 * their cache. With prompts, tools and an output schema, a call stays below 100,000 tokens. With pages of 24 KiB,
 * nearly four fifths of the input come from the cache.
 */
const foldAbove = 80_000;
/**
 * Estimated tokens. If a folded request still exceeds `above`, its older part is summarised, unless that part has fewer
 * than `least`.
 */
const summarize = { above: 36_000, least: 8_000 };

/** Number of latest observations that folding does not remove. */
const keptPages = 2;
/** Maximum characters of a folded result, without its page. */
const longestResult = 1_000;

const foldedPage = "<page removed: an older observation, no longer valid>";

/**
 * The conversation of an agent session as the model sees it. Derived only from the rows, so that another gateway
 * derives the same requests.
 */
export class ModelConversation {
  /** Messages that wait for the next step, in order. */
  waiting: readonly WaitingMessage[] = [];
  #entries: Entry[] = [];
  #tokens = 0;
  #position = 0;
  readonly #summaries = new Map<number, string>();
  readonly #pending = new Map<string, ToolCall>();
  readonly #callIds = new Set<string>();

  /** Position of the last message. */
  get position(): number {
    return this.#position;
  }

  /** Tool calls without a result, in order. */
  get pending(): readonly ToolCall[] {
    return [...this.#pending.values()];
  }

  /** Estimated tokens of the next request. */
  get tokens(): number {
    return this.#tokens;
  }

  add(position: number, message: ConversationMessage): void {
    // The request for this response was folded if necessary. Folding here too has the same result on every gateway.
    if (message.role === "assistant" || this.#summaries.has(this.#position)) this.#fold();
    this.#position = position;
    if (message.role === "assistant") for (const call of callsOf(message)) this.#open(call);
    if (message.role === "tool") for (const id of resultIdsOf(message)) this.#pending.delete(id);
    const last = this.#entries.at(-1);
    // Providers require all results of a response in one message.
    const isMore = last?.message.role === "tool" && message.role === "tool";
    if (isMore) this.#entries.pop();
    this.#tokens -= isMore ? last.tokens : 0;
    this.#push(isMore ? { ...last.message, content: [...last.message.content, ...message.content] } : message);
  }

  /** Appends the waiting messages and then `more`, in the order in which the turn stores them. */
  takeWaiting(more: readonly ConversationMessage[]): void {
    for (const message of [...this.waiting.map((each) => each.message), ...more]) this.add(this.#position + 1, message);
    this.waiting = [];
  }

  /**
   * Adds a summary, made when the last message was at `position`. Folding at that position replaces the older part of
   * the conversation with the summary.
   */
  addSummary(position: number, text: string): void {
    this.#summaries.set(position, text);
  }

  /** Returns the messages of the next request, folded if necessary. */
  request(): ModelMessage[] {
    this.#fold();
    return this.#entries.map(({ message: { isNote: _isNote, ...message } }) => message);
  }

  /** Returns the part to summarise before the next request, if folding does not suffice. */
  oldPart(): OldPart | undefined {
    const isLong = this.#tokens > foldAbove;
    this.#fold();
    if (!isLong || this.#tokens <= summarize.above) return undefined;
    const old = this.#entries.slice(0, this.#tailStart()).filter((entry) => !isOfPerson(entry));
    const tokens = old.reduce((sum, each) => sum + each.tokens, 0);
    return tokens < summarize.least
      ? undefined
      : { position: this.#position, messages: old.map(({ message }) => message) };
  }

  /** Role and name of an element, from the latest observation that showed the element; never its value. */
  describeElement(ref: string): string | undefined {
    return describeIn(
      this.#entries.map(({ message }) => message),
      ref,
    );
  }

  /**
   * Replaces call identifiers that earlier messages already use. Some providers restart numbering in each response, so
   * a new call could be mistaken for an earlier call that has a result.
   */
  withOwnIds(answer: readonly ModelMessage[]): ModelMessage[] {
    const own = new Map<string, string>();
    const rename = (id: string): string => {
      const isTaken = this.#callIds.has(id) || own.has(id);
      own.set(id, isTaken ? randomUUID() : id);
      return own.get(id) ?? id;
    };
    return answer.map((message) => renameCalls(message, rename, (id) => own.get(id) ?? id));
  }

  #open(call: ToolCall): void {
    this.#callIds.add(call.id);
    this.#pending.set(call.id, call);
  }

  #push(message: ConversationMessage): void {
    const tokens = tokensOf(message);
    this.#entries.push({ message, tokens });
    this.#tokens += tokens;
  }

  #fold(): void {
    const summary = this.#summaries.get(this.#position);
    if (this.#tokens <= foldAbove && summary === undefined) return;
    const start = this.#tailStart();
    const tail = this.#entries.slice(start);
    const old = this.#entries.slice(0, start);
    this.#entries = [];
    this.#tokens = 0;
    for (const entry of summary === undefined ? old : old.filter(isOfPerson)) this.#push(foldMessage(entry.message));
    if (summary !== undefined) {
      this.#summaries.delete(this.#position);
      this.#push(noteMessage(`Summary of your earlier steps, which are no longer shown:\n${summary}`));
    }
    for (const entry of tail) {
      this.#entries.push(entry);
      this.#tokens += entry.tokens;
    }
  }

  /**
   * Returns the index of the first entry that folding leaves unchanged. The call of an unchanged result is unchanged
   * too.
   */
  #tailStart(): number {
    let left = keptPages;
    let index = this.#entries.length;
    while (index > 0 && left > 0) {
      index -= 1;
      if (hasPage(this.#entries[index]?.message)) left -= 1;
    }
    if (this.#entries[index]?.message.role === "tool") index -= 1;
    return Math.max(0, index);
  }
}

const isOfPerson = ({ message: { role, isNote } }: Entry): boolean => role === "user" && isNote !== true;

function hasPage(message: ConversationMessage | undefined): boolean {
  if (!message || isOfPerson({ message, tokens: 0 })) return false;
  return textsOf(message).some((text) => text.includes(pageMark));
}

const foldText = (text: string): string => {
  const at = text.indexOf(pageMark);
  return at < 0 ? text : text.slice(0, at) + foldedPage;
};

const foldResult = (text: string): string => {
  const at = text.indexOf(pageMark);
  const outcome = at < 0 ? text : text.slice(0, at);
  const isCut = outcome.length > longestResult;
  const close = isCut && outcome.includes("<page") ? "</page>\n" : "";
  const short = isCut ? `${outcome.slice(0, longestResult)}…\n${close}` : outcome;
  return at < 0 ? short : short + foldedPage;
};

/** Removes pages and pictures of a message, and shortens its results. */
function foldMessage(message: ConversationMessage): ConversationMessage {
  if (message.role === "user" && message.isNote && typeof message.content === "string")
    return { ...message, content: foldText(message.content) };
  if (message.role !== "tool") return message;
  const content = message.content.map((part) =>
    part.type === "tool-result"
      ? { ...part, output: { type: "text" as const, value: foldResult(textOfOutput(part.output)) } }
      : part,
  );
  return { ...message, content };
}

function renameCalls(
  message: ModelMessage,
  rename: (id: string) => string,
  nameOf: (id: string) => string,
): ModelMessage {
  if (message.role === "assistant" && typeof message.content !== "string") {
    const content: Exclude<AssistantModelMessage["content"], string> = message.content.map((part) =>
      part.type === "tool-call" ? { ...part, toolCallId: rename(part.toolCallId) } : part,
    );
    return { ...message, content };
  }
  if (message.role !== "tool") return message;
  const content: ToolModelMessage["content"] = message.content.map((part) =>
    part.type === "tool-result" ? { ...part, toolCallId: nameOf(part.toolCallId) } : part,
  );
  return { ...message, content };
}
