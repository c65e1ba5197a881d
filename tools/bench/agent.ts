import { setTimeout as sleep } from "node:timers/promises";
import { LlmProvider } from "../../test/support/llm-provider.ts";
import { startService } from "../../test/support/service.ts";
import { type Bench, boundVerdict, type Row, type Scale } from "./bench.ts";
import { Client } from "./client.ts";
import { median, spread } from "./samples.ts";
import { startSite } from "./site.ts";

/** Milliseconds from a message to the first model call, and of a step without model and settling. */
const bars = { first: 30, step: 60 };

/** Milliseconds between two turns, in which the page settles. */
const restMs = 100;

/** Measured agent sessions, and turns of each. Each turn sends the messages of the earlier turns again. */
const sessions = 5;
const turns = 5;

/** Actions of a turn. */
const actions = 10;

interface Turn {
  readonly settling_ms: number;
  readonly status: string;
}

interface AgentSession {
  message(): Promise<Turn>;
  end(): Promise<unknown>;
}

/** Time that a turn takes besides its model. */
export const agent: Bench = {
  name: "agent",
  title: "a turn on a static page: from the message to the first model call, and each step without model and settling",
  async run(scale): Promise<Row[]> {
    await using site = await startSite();
    await using provider = await new LlmProvider().start();
    const service = await startService({ EGRESS_ALLOW: site.host, ...provider.env });
    try {
      using client = new Client(service);
      const key = { provider: "anthropic", api_key: provider.key };
      (await client.open("PUT", "/v1/account/me/byok-llm-key", key)).resume();
      const open = async () => {
        const { id, session_id } = await client.post<{ id: string; session_id: string }>("/v1/agent-sessions", {});
        await client.post(`/v1/sessions/${session_id}/navigate`, { url: site.formUrl });
        return {
          message: () => client.post<Turn>(`/v1/agent-sessions/${id}/message`, { text: "Tap.", wait_ms: 60_000 }),
          end: async () => (await client.open("DELETE", `/v1/agent-sessions/${id}`)).resume(),
        };
      };
      return await measureTurns(provider, open, scale);
    } finally {
      await service.stop();
    }
  },
};

/** Measures turns of agent sessions. `open` starts an agent session on a page. */
async function measureTurns(provider: LlmProvider, open: () => Promise<AgentSession>, scale: Scale): Promise<Row[]> {
  const firsts: number[] = [];
  const steps: number[] = [];
  const settlings: number[] = [];
  let session = await open();
  const rounds = scale.of(sessions, 2) * turns;
  for (let round = 0; round < rounds; round += 1) {
    if (round > 0 && round % turns === 0) {
      await session.end();
      session = await open();
    }
    let count = 0;
    let firstAt = 0;
    let answeredAt = 0;
    // From each answer of the model to its next request, without the time in which the model reads a request.
    let between = 0;
    provider.script = ({ arrivedAt }) => {
      if (count === 0) firstAt = arrivedAt;
      else between += arrivedAt - answeredAt;
      count += 1;
      answeredAt = performance.now();
      // A tap that has no effect on the page.
      const tap = { kind: "tap", x: 5, y: 5 };
      return count > actions ? { text: "Done." } : { calls: [{ name: "act", input: { actions: [tap] } }] };
    };
    // The session takes a picture of the page after each step.
    await sleep(restMs);
    const sentAt = performance.now();
    const turn = await session.message();
    if (turn.status !== "done") throw new Error(`the turn ended as ${JSON.stringify(turn)}`);
    // The first turn loads the model libraries.
    if (round === 0) continue;
    firsts.push(firstAt - sentAt);
    steps.push((between - turn.settling_ms) / actions);
    settlings.push(turn.settling_ms / actions);
  }
  return [
    {
      what: "message to first call",
      ours: spread(firsts),
      bare: "-",
      verdict: boundVerdict(median(firsts), bars.first, "ms"),
    },
    {
      what: "step without settling",
      ours: spread(steps),
      bare: "-",
      verdict: boundVerdict(median(steps), bars.step, "ms"),
    },
    { what: "settling of a step", ours: spread(settlings), bare: "-", verdict: "for comparison" },
  ];
}
