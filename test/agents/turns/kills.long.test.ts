import { afterAll, beforeAll, expect, test } from "vitest";
import { waitUntil } from "../../../src/platform/bounded-wait.ts";
import { DoomedService } from "../../chaos/doomed-service.ts";
import { type Asked, LlmProvider, type Said } from "../../support/llm-provider.ts";
import { ReportingSite } from "../../support/reporting-site.ts";

/** A page that counts clicks. */
class ClickSite extends ReportingSite {
  clicks = 0;
  onClick: (count: number) => void = () => undefined;

  constructor() {
    super(`<button id="b" onclick="fetch('/told', { method: 'POST' })">Click</button>`);
  }

  protected override receive(): void {
    this.clicks += 1;
    this.onClick(this.clicks);
  }

  async start(): Promise<this> {
    return this.listen();
  }
}

let provider: LlmProvider;
let site: ClickSite;
let doomed: DoomedService;
beforeAll(async () => {
  [provider, site] = await Promise.all([new LlmProvider().start(), new ClickSite().start()]);
  doomed = await DoomedService.start({ ...provider.env, EGRESS_ALLOW: site.host });
  const key = { provider: "anthropic", api_key: "good-key-x7Qa" };
  await doomed.rest("/v1/account/me/byok-llm-key", key, { method: "PUT" });
}, 120_000);
afterAll(async () => {
  await doomed?.[Symbol.asyncDispose]();
  await provider?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
}, 60_000);

/** Taps the button of the last snapshot. */
const tap = ({ results }: Asked): Said => {
  const [, ref] = /button "Click" ref=(s\d+e\d+)/.exec(results.at(-1) ?? "") ?? [];
  return { calls: [{ name: "act", input: { actions: [{ kind: "tap", ref }] } }] };
};

/** The model's answers by the number of results. A repeated request has the same answer. */
const steps = (asked: Asked): readonly Said[] => [
  { calls: [{ name: "navigate", input: { url: site.url } }] },
  tap(asked),
  tap(asked),
  tap(asked),
  { calls: [{ name: "done", input: { text: "Three times." } }] },
];

type Point = readonly ["asked" | "answered" | "clicked", number];
const points: readonly Point[] = [
  ...[0, 1, 2, 3, 4].flatMap((step): Point[] => [
    ["asked", step],
    ["answered", step],
  ]),
  ...[1, 2, 3].map((click): Point => ["clicked", click]),
];

test.each(points)(
  "a turn ends normally after a kill of the gateway when the model or page has %s %i",
  async (...point) => {
    let replaced: Promise<unknown> | undefined;
    const reach = (...reached: Point): void => {
      if (reached.join() === point.join()) replaced ??= doomed.replaceSupervisor();
    };
    site.clicks = 0;
    site.onClick = (count) => reach("clicked", count);
    provider.script = (asked) => {
      const { results } = asked;
      reach("asked", results.length);
      // After the answer was sent.
      setTimeout(() => reach("answered", results.length), 5);
      return steps(asked)[results.length] ?? { text: "There is nothing more in the script." };
    };
    const { body: agent } = await doomed.rest("/v1/agent-sessions", {});
    const path = `/v1/agent-sessions/${agent.id}`;
    const { body: turn } = await doomed.rest(`${path}/message`, { text: "Click." });
    expect(turn.status).toBe("queued");
    await waitUntil(() => replaced !== undefined, { timeout: 30_000, every: 5 });
    await replaced;
    const hasEnded = async () => (await doomed.rest(path)).body.running_turn_id === null;
    expect(await waitUntil(hasEnded, { timeout: 30_000, every: 50 })).toBe(true);
    const { body: transcript } = await doomed.rest(`${path}/transcript?limit=100`);
    // biome-ignore lint/suspicious/noExplicitAny: entries of every shape.
    const told = transcript.data.map(({ content }: any) => content.text ?? [content.name, content.error]);
    const done = ["navigate", "act", "act", "act"].map((name) => [name, undefined]);
    expect(told).toEqual(["Click.", ...done, "Three times."]);
    expect(site.clicks).toBe(3);
    await doomed.rest(path, undefined, { method: "DELETE" });
  },
  90_000,
);

test.each([1, 2, 3])(
  "a recipe resumes after a kill of its gateway at click %i",
  async (click) => {
    let replaced: Promise<unknown> | undefined;
    site.clicks = 0;
    site.onClick = (count) => {
      if (count === click) replaced ??= doomed.replaceSupervisor();
    };
    const step = { do: { kind: "interact", action: { kind: "tap", selector: "#b" } } };
    const recipe = { name: "Clicks", start_url: site.url, steps: [step, step, step] };
    const { body: made } = await doomed.rest("/v1/recipes", recipe);
    const { body: agent } = await doomed.rest("/v1/agent-sessions", { recipe_id: made.id });
    const path = `/v1/agent-sessions/${agent.id}`;
    await waitUntil(() => replaced !== undefined, { timeout: 30_000, every: 5 });
    await replaced;
    const hasEnded = async () => (await doomed.rest(path)).body.running_turn_id === null;
    expect(await waitUntil(hasEnded, { timeout: 30_000, every: 50 })).toBe(true);
    const { body: turn } = await doomed.rest(`${path}/turns/${agent.running_turn_id}/cancel`, {});
    expect([turn.status, site.clicks]).toEqual(["done", 3]);
    const { body: transcript } = await doomed.rest(`${path}/transcript?limit=100`);
    // biome-ignore lint/suspicious/noExplicitAny: entries of every shape.
    const told = transcript.data.map(({ content }: any) => content.text ?? [content.name, content.error]);
    const done = ["navigate", "interact", "interact", "interact"].map((name) => [name, undefined]);
    expect(told).toEqual(['The recipe "Clicks" has started.', ...done]);
    await doomed.rest(path, undefined, { method: "DELETE" });
  },
  90_000,
);

test("a turn continues from its summary after a kill of the gateway", async () => {
  // biome-ignore lint/suspicious/noExplicitAny: messages of a protocol that is not ours.
  const requests: any[] = [];
  let summaries = 0;
  let replaced: Promise<unknown> | undefined;
  provider.script = ({ body }) => {
    if (JSON.stringify(body.system).includes("You summarise")) {
      summaries += 1;
      return { text: "Every page was empty." };
    }
    // Folding keeps the model's words, so only a summary can shorten them.
    if (summaries === 0) return { text: "y".repeat(24_000), calls: [{ name: "observe", input: {} }] };
    requests.push(body.messages);
    if (requests.length > 1) return { calls: [{ name: "done", input: { text: "All empty." } }] };
    replaced = doomed.replaceSupervisor();
    return { silent: true };
  };
  const { body: agent } = await doomed.rest("/v1/agent-sessions", {});
  const path = `/v1/agent-sessions/${agent.id}`;
  const { body: turn } = await doomed.rest(`${path}/message`, { text: "Look on, please." });
  expect(await waitUntil(() => replaced !== undefined, { timeout: 60_000, every: 5 })).toBe(true);
  await replaced;
  const hasEnded = async () => (await doomed.rest(path)).body.running_turn_id === null;
  expect(await waitUntil(hasEnded, { timeout: 30_000, every: 50 })).toBe(true);
  const { body: ended } = await doomed.rest(`${path}/turns/${turn.turn_id}/cancel`, {});
  expect([ended.status, ended.text, summaries, requests.length]).toEqual(["done", "All empty.", 1, 2]);
  const told = JSON.stringify(requests[1]);
  for (const words of ["Look on, please.", "Every page was empty."]) expect(told).toContain(words);
  expect(requests[1]).toEqual(requests[0]);
  await doomed.rest(path, undefined, { method: "DELETE" });
}, 150_000);

/** When the worker is killed: the model's state by its number of results, or the page's by its clicks. */
const workerPoints: readonly (readonly ["asked" | "paused" | "clicked", number])[] = [
  ["asked", 2],
  ["clicked", 2],
  ["paused", 2],
];

test.each(workerPoints)(
  "a turn reports a kill of the worker when the model or page has %s %i",
  async (...point) => {
    doomed.look();
    const worker = doomed.workerPid;
    let isKilled = false;
    const reach = (...reached: (typeof workerPoints)[number]): void => {
      if (isKilled || reached.join() !== point.join()) return;
      isKilled = true;
      // Immediately, so that the pending action cannot finish.
      process.kill(worker, "SIGKILL");
    };
    site.clicks = 0;
    site.onClick = (count) => reach("clicked", count);
    provider.script = (asked) => {
      const { length: count } = asked.results;
      reach("asked", count);
      if (point[0] === "asked" && isKilled) return { silent: true };
      // Makes the turn wait between two steps.
      if (point.join() === ["paused", count].join() && !isKilled) {
        reach("paused", count);
        return { status: 429, headers: { "retry-after": "20" } };
      }
      return steps(asked)[count] ?? { text: "There is nothing more in the script." };
    };
    const { body: agent } = await doomed.rest("/v1/agent-sessions", {});
    const path = `/v1/agent-sessions/${agent.id}`;
    const { body: turn } = await doomed.rest(`${path}/message`, { text: "Click.", wait_ms: 60_000 });
    expect(turn).toMatchObject({ status: "failed", reason: "worker_lost" });
    expect(isKilled).toBe(true);
    const { body: transcript } = await doomed.rest(`${path}/transcript?limit=100`);
    // biome-ignore lint/suspicious/noExplicitAny: entries of every shape.
    const told = transcript.data.map(({ content }: any) => content.text ?? [content.name, content.error?.ended_reason]);
    const [clicks, doubt] = point[0] === "clicked" ? [2, [["act", "worker_lost"]]] : [1, []];
    expect(told).toEqual(["Click.", ["navigate", undefined], ["act", undefined], ...doubt]);
    const { body: message } = await doomed.rest(`${path}/message`, { text: "And on." });
    expect([message.type.split("/").at(-1), message.ended_reason]).toEqual(["session-destroyed", "worker_lost"]);
    await doomed.createEventually();
    expect(site.clicks).toBe(clicks);
  },
  90_000,
);
