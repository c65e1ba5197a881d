import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createLlmClients, type LlmClient, type Manner, type Said } from "../../support/llm-clients.ts";
import { LlmProvider } from "../../support/llm-provider.ts";

let provider: LlmProvider;
let clients: LlmClient[];
beforeAll(async () => {
  provider = await new LlmProvider().start();
  clients = createLlmClients(provider.origin);
});
afterAll(async () => {
  await provider?.[Symbol.asyncDispose]();
});
beforeEach(() => {
  provider.asked.length = 0;
  provider.script = () => ({ text: "Hello." });
});

const usage = { input: 120, output: 30, cached: 100 };
const names = ["anthropic", "openai", "chat", "google"] as const;
type Name = (typeof names)[number];

function clientOf(name: Name): LlmClient {
  const client = clients.find((each) => each.name === name);
  if (!client) throw new Error(`there is no client of ${name}`);
  return client;
}

/** Status and message of the client's error. */
async function refusalOf(asked: Promise<unknown>): Promise<{ status: number | undefined; message: string }> {
  const error = await asked.then(
    () => new Error("it was answered"),
    (thrown) => thrown,
  );
  return { status: error.status, message: error.message };
}

const hello: Said[] = [{ user: "Hello?" }];
/** Fake picture of a given length in base64. */
const picture = (length: number): string => `/9j/${"A".repeat(length - 4)}`;

describe.each(names)("the official client of %s", (name) => {
  const ask = (said: readonly Said[], manner?: Manner) => clientOf(name).ask(said, manner);

  test.each([true, false])("holds a dialogue with calls, results and pictures (streamed: %s)", async (stream) => {
    const input = { city: "Lyon", note: 'a "quoted" line\nand é' };
    provider.script = ({ results }) =>
      results.length === 0
        ? {
            text: "I look.",
            calls: [
              { name: "weather", input },
              { name: "weather", input: {} },
            ],
            usage,
          }
        : { text: `It says: ${results.join()}`, usage };
    const question: Said = { user: "How is the weather?", picture: picture(1_000) };
    const first = await ask([question], { stream });
    expect(first).toMatchObject({ text: "I look.", usage });
    expect(first.calls.map((call) => [call.name, call.input])).toEqual([
      ["weather", input],
      ["weather", {}],
    ]);
    expect(JSON.stringify(provider.asked[0]?.body)).toContain(picture(1_000));
    const results = first.calls.map(({ id = "" }, index) => ({ of: id, name: "weather", text: `sun ${index}` }));
    const second = await ask([question, { answer: first }, { results }], { stream });
    expect(second).toMatchObject({ text: "It says: sun 0,sun 1", calls: [], usage });
    expect(provider.asked[1]).toMatchObject({ dialect: name, key: "good-key", results: ["sun 0", "sun 1"] });
  });

  const called: Said[] = [
    ...hello,
    { answer: { text: "", calls: [{ id: "call_1", name: "weather", input: {} }], usage } },
  ];
  const result: Said = { results: [{ of: "call_1", name: "weather", text: "sun" }] };
  const tooLong = { anthropic: 1_000_000, openai: 1_200_000, chat: 1_200_000, google: 4_500_000 }[name];
  const tooLarge = { anthropic: 5_242_884, openai: 52_428_800, chat: 52_428_800, google: 20_971_520 }[name];
  const isAnthropicOrGoogle = name === "anthropic" || name === "google";
  const refusals: [string, readonly Said[], Manner, number, RegExp][] = [
    ["an unknown field", hello, { more: { colour: "red" } }, 400, /colour/],
    ["a wrong key", hello, { key: "wrong-key" }, name === "google" ? 400 : 401, /key/],
    ["an unknown model", hello, { model: "unknown-model" }, 404, /unknown-model/],
    ["a result without its call", [...hello, result], {}, 400, /call|tool_use/],
    ["a call without its result", [...called, ...hello], {}, 400, /call|tool_use/],
    [
      "an oversized image",
      [{ user: "See?", picture: picture(tooLarge) }],
      {},
      isAnthropicOrGoogle ? 400 : 413,
      /exceed/,
    ],
    ["too long a context", [{ user: "a word ".repeat(tooLong / 7) }], {}, 400, /too long|context window|exceeds/],
  ];
  // OpenAI identifies results by id only, at any position.
  const twice = [...called, result, { user: "And?" }, result];
  if (name !== "openai") refusals.push(["a result twice", twice, {}, 400, /call|tool_use/]);
  test.each(refusals)("is refused %s", async (_, said, manner, status, message) => {
    const refusal = await refusalOf(ask(said, { ...manner, stream: true }));
    expect(refusal).toEqual({ status, message: expect.stringMatching(message) });
    expect(provider.asked).toEqual([]);
  });

  test.each([429, 529, 503])("reads a status of %i and its retry delay", async (status) => {
    provider.script = () => ({ status, headers: { "retry-after": "7" } });
    expect(await refusalOf(ask(hello, { stream: true }))).toMatchObject({ status });
    const headers = await ask(hello).catch(({ headers }) => headers);
    // Google's client drops the headers of an error.
    if (name !== "google") expect(headers.get("retry-after")).toBe("7");
  });

  test.each([true, "told"] as const)("reports a stream that was cut (%s)", async (cut) => {
    provider.script = () => ({ cut });
    const { message } = await refusalOf(ask(hello, { stream: true }));
    expect(message).not.toBe("it was answered");
    if (cut === "told") expect(message).toContain("Overloaded");
  });

  test("gives up on a provider that is silent", async () => {
    provider.script = () => ({ silent: true });
    const { message } = await refusalOf(ask(hello, { stream: true, timeout: 200 }));
    expect(message).toMatch(/timed out|abort/i);
  });
});
