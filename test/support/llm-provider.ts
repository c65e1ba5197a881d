import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text as readText } from "node:stream/consumers";
import type { Dialect, WireAnswer, WireFault } from "./llm-wire/dialect.ts";
import { dialectOf } from "./llm-wire/dialects.ts";

/** Scripted output of a model: text, tool calls, or both. */
export interface Said {
  readonly text?: string;
  readonly calls?: readonly { readonly name: string; readonly input: unknown; readonly id?: string }[];
  readonly usage?: { readonly input: number; readonly output: number; readonly cached?: number };
}

/** Failure in place of an answer. */
export type Mishap =
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly message?: string }
  /** The stream ends in the middle, either by disconnecting or with an error event. */
  | { readonly cut: true | "told" }
  /** No response is sent. */
  | { readonly silent: true };

/** Request as received by the provider. */
export interface Asked {
  readonly dialect: Dialect["name"];
  readonly model: string;
  readonly key: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into requests of every shape.
  readonly body: any;
  /** Tool results in the request as text, by the tool's name. */
  readonly results: readonly string[];
  /** When the request's headers arrived, in milliseconds of `performance.now()`. */
  readonly arrivedAt: number;
  /** Number of the model's steps in the conversation so far. A repeated request has the same number. */
  readonly step: number;
}

// biome-ignore lint/suspicious/noExplicitAny: bodies of protocols that are not ours.
const isOfModel = ({ role, type }: any): boolean =>
  role === "assistant" || role === "model" || type === "function_call";

// biome-ignore lint/suspicious/noExplicitAny: bodies of protocols that are not ours.
function stepOf({ messages, input, contents }: any): number {
  const own: boolean[] = [messages, input, contents].find(Array.isArray)?.map(isOfModel) ?? [];
  return own.filter((isOwn, index) => isOwn && !own[index - 1]).length;
}

type Script = (asked: Asked, index: number) => Said | Mishap | Promise<Said | Mishap>;

export type ScriptedStep = Said | ((asked: Asked) => Said | Promise<Said>);

/** Accepted keys and unknown models. Others are refused as the provider does. */
const goodKey = /^(good|sk|AIza)-/;
const unknownModel = /^unknown/;

/** Returns environment variables that point a gateway to one server instead of the providers. */
export function llmEnvOf(origin: string): Record<string, string> {
  const addresses = [`anthropic=${origin}/v1`, `openai=${origin}/v1`, `google=${origin}/v1beta`];
  return { LLM_ALLOW: new URL(origin).host, LLM_ADDRESSES: addresses.join(",") };
}

/**
 * Server that implements the APIs of Anthropic (`/v1/messages`), OpenAI (`/v1/responses`, `/v1/chat/completions`) and
 * Google (`/v1beta/models/...`, `/v1/models/...`) with scripted answers. Like the providers, it refuses unknown keys
 * and fields, unmatched tool results, and images and contexts that are too large. test/agents/llm/provider.unit.test.ts
 * checks it with the official clients.
 */
export class LlmProvider implements AsyncDisposable {
  readonly #server = createServer((request, response) => {
    this.#answer(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  readonly #pastKeys = new Set<string>();
  readonly asked: Asked[] = [];
  script: Script = () => ({ text: "Done." });
  /** Key for requests to the present script. */
  key = "good-key-x0";

  /** Begins a script with a new key. Late requests with earlier keys get no answer and are not recorded. */
  begin(script: Script = () => ({ text: "Done." })): void {
    this.#pastKeys.add(this.key);
    this.key = `good-key-x${this.#pastKeys.size}`;
    this.asked.length = 0;
    this.script = script;
  }

  /** Sets the successive answers from the next request on. A repeated request gets its answer again. */
  say(...script: readonly ScriptedStep[]): void {
    this.asked.length = 0;
    let first: number | undefined;
    this.script = (asked) => {
      first ??= asked.step;
      const next = script[asked.step - first] ?? { text: "There is nothing more in the script." };
      return typeof next === "function" ? next(asked) : next;
    };
  }

  async start(port = 0): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(port, "127.0.0.1", resolve));
    return this;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Environment variables that point a gateway to this server instead of the providers. */
  get env(): Record<string, string> {
    return llmEnvOf(this.origin);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const dialect = dialectOf(request.url ?? "");
    if (!dialect) {
      response.writeHead(404).end();
      return;
    }
    const arrivedAt = performance.now();
    const body = JSON.parse(await readText(request));
    const refuse = ({ headers = {}, ...fault }: WireFault & { headers?: Readonly<Record<string, string>> }) => {
      response.writeHead(fault.status, { "content-type": "application/json", ...headers });
      response.end(JSON.stringify(dialect.fault(fault)));
    };
    const key = dialect.keyOf(request.headers);
    const model = dialect.modelOf(request.url ?? "", body);
    if (this.#pastKeys.has(key)) return;
    if (!goodKey.test(key)) return refuse(dialect.wrongKey);
    if (unknownModel.test(model)) return refuse(dialect.unknownModel(model));
    const wrong = dialect.check(body);
    if (wrong) return refuse(wrong);
    const read = { results: dialect.resultsOf(body), step: stepOf(body) };
    const asked = { dialect: dialect.name, model, key, body, arrivedAt, ...read };
    const index = this.asked.push(asked) - 1;
    const said = await this.script(asked, index);
    if ("status" in said) return refuse({ message: "Overloaded", ...said });
    if ("silent" in said) return;
    const isStream = dialect.isStream(request.url ?? "", body);
    const { text, calls = [], usage = { input: 100, output: 10 } } = "cut" in said ? { text: "And so" } : said;
    const answer: WireAnswer = {
      model,
      usage: { cached: 0, ...usage },
      ...(text !== undefined && { text }),
      calls: calls.map((call, n) => ({ id: `call_${index}_${n}`, ...call })),
    };
    if (!isStream) {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(dialect.whole(answer)));
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const parts = dialect.stream(answer);
    if ("cut" in said) {
      const begun = parts.slice(0, Math.ceil(parts.length / 2)).join("");
      if (said.cut === "told") response.end(begun + dialect.streamFault({ status: 529, message: "Overloaded" }));
      else response.write(begun, () => response.destroy());
      return;
    }
    for (const part of parts) response.write(part);
    response.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
