import { afterAll, beforeAll, expect, test } from "vitest";
import { waitUntil } from "../../../src/platform/bounded-wait.ts";
import { ownCpuMs } from "../../../tools/bench/processes.ts";
import { type OwnCdpScene, startCdpScene } from "../../support/cdp-proxy-scene.ts";
import { type Asked, LlmProvider, type Said } from "../../support/llm-provider.ts";
import { tokensOf } from "../../support/llm-wire/dialect.ts";

let provider: LlmProvider;
let scene: OwnCdpScene;
beforeAll(async () => {
  provider = await new LlmProvider().start();
  scene = await startCdpScene(provider.env);
}, 120_000);
afterAll(async () => {
  await scene?.[Symbol.asyncDispose]();
  await provider?.[Symbol.asyncDispose]();
}, 60_000);

const steps = 300;

/** CPU milliseconds of the gateway and the worker. */
const ownCpu = (): number => ownCpuMs(scene.service.pidOf("gateway")) + ownCpuMs(scene.service.pidOf("worker"));

/** Requests without the messages, their messages as JSON text, and tokens. */
interface Sent {
  readonly text: string;
  readonly tokens: number;
}

const sentBy = ({ body }: Asked): Sent => {
  const { messages, tools, system } = body;
  return { text: JSON.stringify([tools, system]) + JSON.stringify(messages).slice(0, -1), tokens: tokensOf(body) };
};

test("a turn of 300 steps repeats its requests between foldings, with bounded calls and constant CPU", async () => {
  const call = (name: string, input: object): Said => ({ calls: [{ name, input }] });
  const sent: Sent[] = [];
  const cpu = new Map<number, number>();
  let path = "";
  // Storing a key makes a call, which the script must not count.
  const key = { provider: "anthropic", api_key: "good-key-x7Qa" };
  await scene.rest("/v1/account/me/byok-llm-key", key, { method: "PUT" });
  provider.script = async (asked) => {
    provider.asked.length = 0;
    // A summary of the older part is no step.
    if (asked.body.tools === undefined) return { text: "All the same so far." };
    const index = sent.push(sentBy(asked)) - 1;
    if ([20, 70, 250, 299].includes(index)) cpu.set(index, ownCpu());
    if (index === 0) return call("navigate", { url: scene.site.url("/wordy.html") });
    if (index === 9) await scene.rest(`${path}/message`, { text: "Mind the second word." });
    return index < steps - 1 ? call("observe", {}) : call("done", { text: "All seen." });
  };
  const limits = { steps: 1_000, tokens: 100_000_000, seconds: 3_600 };
  const { body: agent } = await scene.rest("/v1/agent-sessions", { limits });
  path = `/v1/agent-sessions/${agent.id}`;
  const { body: turn } = await scene.rest(`${path}/message`, { text: "Look on, please." });
  let ended = turn;
  const hasEnded = async () => {
    ended = (await scene.rest(`${path}/turns/${turn.turn_id}`)).body;
    return ended.status !== "queued" && ended.status !== "running";
  };
  await waitUntil(hasEnded, { timeout: 3_000_000, every: 2_000 });
  let repeated = 0;
  let folds = 0;
  for (const [index, { text }] of sent.entries()) {
    const before = sent[index - 1]?.text ?? "";
    if (text.startsWith(before)) repeated += before.length;
    else folds += 1;
  }
  const share = repeated / sent.reduce((sum, { text }) => sum + text.length, 0);
  const max = Math.max(...sent.map(({ tokens }) => tokens));
  const [early, late] = [cpuPerStep(cpu, 20, 70), cpuPerStep(cpu, 250, 299)];
  console.info(
    `${(100 * share).toFixed(1)} % of all bytes repeated, ${folds} foldings, at max ${max} tokens a call, ` +
      `CPU a step ${early.toFixed(1)} ms at 20 to 70, ${late.toFixed(1)} ms at 250 to 300`,
  );
  expect(ended).toMatchObject({ status: "done", steps });
  expect(share).toBeGreaterThan(0.75);
  expect(folds).toBeLessThan(steps / 10);
  expect(max).toBeLessThan(100_000);
  expect(late / early).toBeLessThan(1.5);
  for (const words of ["Look on, please.", "Mind the second word."]) expect(sent.at(-1)?.text).toContain(words);
}, 3_200_000);

const cpuPerStep = (cpu: ReadonlyMap<number, number>, from: number, to: number): number =>
  ((cpu.get(to) ?? 0) - (cpu.get(from) ?? 0)) / (to - from);
