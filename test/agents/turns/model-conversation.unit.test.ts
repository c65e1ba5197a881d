import { createHash } from "node:crypto";
import type { ModelMessage } from "ai";
import { expect, test } from "vitest";
import { promptVersion, systemPrompt } from "../../../src/agents/prompts/system-prompt.ts";
import { toolsFor } from "../../../src/agents/prompts/tools.ts";
import { ConversationCache } from "../../../src/agents/turns/conversation-cache.ts";
import { ModelConversation } from "../../../src/agents/turns/model-conversation.ts";
import {
  type ConversationMessage,
  noteMessage,
  resultMessage,
  tokensOf,
} from "../../../src/agents/turns/model-messages.ts";
import { ReadAhead } from "../../../src/agents/turns/read-ahead.ts";
import { createTestClock } from "../../support/test-clock.ts";

const task = "Find the cheapest <page {train} of all.";
const page = (bytes: number): string => `<page {"page_id":"page_1"}>\n- text "${"x".repeat(bytes)}"\n</page>`;

/** Messages of a turn with the given number of steps. The model writes `words` characters in each step. */
function* messagesOf(steps: number, bytes: number, words: number): Generator<ConversationMessage> {
  yield { role: "user", content: task };
  yield noteMessage(`The page is now:\n${page(bytes)}`);
  for (let step = 0; step < steps; step += 1) {
    const call = { id: `call_${step}`, name: "observe", input: {} };
    const tool = { type: "tool-call" as const, toolCallId: call.id, toolName: call.name, input: call.input };
    yield { role: "assistant", content: [{ type: "text", text: "y".repeat(words) }, tool] };
    yield resultMessage(call, `done\n${page(bytes)}`, step === 3 ? new Uint8Array(9_000) : undefined);
    if (step === 5) yield { role: "user", content: "In the morning, please." };
  }
}

const isPrefix = (one: readonly ModelMessage[], other: readonly ModelMessage[]): boolean =>
  one.every((message, index) => JSON.stringify(message) === JSON.stringify(other[index]));

/** Runs a conversation, with a summary where needed. Returns its requests and summaries. */
function run(messages: Iterable<ConversationMessage>) {
  const conversation = new ModelConversation();
  const requests: ModelMessage[][] = [];
  const summaries = new Map<number, string>();
  let position = 0;
  for (const message of messages) {
    if (message.role === "assistant") {
      const old = conversation.oldPart();
      if (old) {
        summaries.set(old.position, `summary ${summaries.size}`);
        conversation.addSummary(old.position, `summary ${summaries.size - 1}`);
      }
      requests.push(conversation.request());
    }
    position += 1;
    conversation.add(position, message);
  }
  return { requests, summaries };
}

test("a request is the one before it plus a suffix between two foldings, and keeps the words of the person", () => {
  const { requests, summaries } = run(messagesOf(300, 6_000, 20));
  const folds = requests.filter((request, index) => index > 0 && !isPrefix(requests[index - 1] ?? [], request));
  expect(folds.length).toBeGreaterThan(5);
  expect(folds.length).toBeLessThan(15);
  expect(Math.max(...requests.map(tokensOf))).toBeLessThan(82_000);
  const words = (requests.at(-1) ?? []).filter(({ role }) => role === "user").map(({ content }) => content);
  expect(words).toContain(task);
  expect(words).toContain("In the morning, please.");
  expect(JSON.stringify(requests.at(-1))).not.toContain("image/jpeg");
  expect(summaries.size).toBeLessThan(3);
});

test("a summary replaces the older part when folding does not suffice, and another gateway derives the same requests", () => {
  const messages = [...messagesOf(120, 6_000, 3_000)];
  const { requests, summaries } = run(messages);
  expect(summaries.size).toBeGreaterThan(1);
  expect(Math.max(...requests.map(tokensOf))).toBeLessThan(82_000);
  const other = new ModelConversation();
  for (const [position, text] of summaries) other.addSummary(position, text);
  const derived: ModelMessage[][] = [];
  for (const [index, message] of messages.entries()) {
    if (message.role === "assistant") derived.push(other.request());
    other.add(index + 1, message);
  }
  expect(derived).toEqual(requests);
  // The first derivation only at the end, as after a takeover.
  const late = new ModelConversation();
  for (const [position, text] of summaries) late.addSummary(position, text);
  for (const [index, message] of messages.entries()) late.add(index + 1, message);
  other.request();
  expect(late.request()).toEqual(other.request());
  expect(JSON.stringify(late.request())).toContain(`summary ${summaries.size - 1}`);
});

test("a conversation kept between turns makes the requests of a new one", () => {
  const messages = [...messagesOf(120, 6_000, 3_000)];
  const { requests, summaries } = run(messages);
  const cache = new ConversationCache();
  const derived: ModelMessage[][] = [];
  let conversation = new ModelConversation();
  for (const [index, message] of messages.entries()) {
    if (index % 7 === 0) {
      cache.keep("agt_1", conversation);
      conversation = cache.take("agt_1") ?? new ModelConversation();
      // Each turn reads the summaries from the position of its conversation on.
      for (const [position, text] of summaries)
        if (position >= conversation.position && position <= index) conversation.addSummary(position, text);
    }
    if (message.role === "assistant") {
      const summary = summaries.get(index);
      if (summary !== undefined) conversation.addSummary(index, summary);
      derived.push(conversation.request());
    }
    conversation.add(index + 1, message);
  }
  expect(derived).toEqual(requests);
});

test("the cache keeps each conversation for one run, and evicts the oldest above 500,000 tokens", () => {
  const cache = new ConversationCache();
  const long = (): ModelConversation => {
    const conversation = new ModelConversation();
    conversation.add(1, { role: "user", content: "x".repeat(600_000) });
    return conversation;
  };
  for (const name of ["first", "second", "third"]) cache.keep(name, long());
  expect(cache.take("first")).toBeUndefined();
  expect(cache.take("second")?.position).toBe(1);
  expect(cache.take("second")).toBeUndefined();
  cache.keep("fourth", long());
  expect(cache.take("third")?.position).toBe(1);
  expect(cache.take("fourth")?.position).toBe(1);
});

test("a page observed with the message is given to one run, and only within two seconds", async () => {
  const clock = createTestClock();
  const pages = new ReadAhead<string>(clock);
  pages.add("trn_1", Promise.resolve("page"));
  pages.add("trn_2", Promise.resolve("page"));
  pages.add("trn_3", Promise.reject(new Error("the session has ended")));
  clock.advance(1_500);
  expect(await pages.take("trn_1")).toBe("page");
  expect(await pages.take("trn_1")).toBeUndefined();
  expect(await pages.take("trn_3")).toBeUndefined();
  pages.add("trn_4", Promise.resolve("page"));
  pages.drop("trn_4");
  expect(await pages.take("trn_4")).toBeUndefined();
  clock.advance(501);
  expect(await pages.take("trn_2")).toBeUndefined();
});

test("the version of the prompts changes with their texts", () => {
  const tools = [true, false].map((vision) => toolsFor({ outputSchema: {}, hasRecipe: true, vision }));
  const texts = JSON.stringify([systemPrompt("x", ["y"]), tools]);
  const digest = createHash("sha256").update(texts).digest("hex").slice(0, 12);
  // If this fails, increase `promptVersion` and replace both.
  expect([promptVersion, digest]).toEqual([4, "f08ab502ed7d"]);
});
