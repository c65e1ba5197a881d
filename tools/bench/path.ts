import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import autocannon from "autocannon";
import { type Bench, type Row, ratioVerdict } from "./bench.ts";
import type { ServerReady } from "./path-server.ts";
import { interleave, type Measure, median } from "./samples.ts";

const bar = 2;
const connections = 50;

/** Requests per round. They take some 150 ms of CPU time, so that both sides have the same machine load. */
const requests = 3_000;

/** Warm-up rounds: the gateway's path is compiled after some 20,000 requests, Fastify's after fewer. */
const warmUp = 8;

const server = fileURLToPath(new URL("path-server.ts", import.meta.url));

/** A request through the gateway, compared with the same route on bare Fastify. */
export const path: Bench = {
  name: "path",
  title: "server CPU of a small authenticated POST (navigate, answered at once) against the same route on bare Fastify",
  async run(scale): Promise<Row[]> {
    await using gateway = await Side.start("gateway");
    await using bare = await Side.start("bare");
    const sides: Record<"gateway" | "bare", Measure> = { gateway: () => gateway.measure(), bare: () => bare.measure() };
    const cpu = await interleave(sides, { rounds: scale.of(15, 5), warmUp });
    const ratio = median(cpu.gateway) / median(cpu.bare);
    return [
      {
        what: "CPU of a request",
        ours: microseconds(cpu.gateway),
        bare: microseconds(cpu.bare),
        verdict: ratioVerdict(ratio, bar),
      },
    ];
  },
};

function microseconds(samples: readonly number[]): string {
  return `${median(samples).toFixed(1)} us (least ${Math.min(...samples).toFixed(1)})`;
}

/** A server in its own process. */
class Side {
  readonly #process: ChildProcess;
  readonly #ready: ServerReady;

  private constructor(process: ChildProcess, ready: ServerReady) {
    this.#process = process;
    this.#ready = ready;
  }

  static async start(kind: "gateway" | "bare"): Promise<Side> {
    const process = fork(server, [kind]);
    const [ready] = await once(process, "message");
    return new Side(process, ready);
  }

  /** Returns the server's CPU microseconds per request. */
  async measure(): Promise<number> {
    const before = await this.#cpu();
    const { url, key } = this.#ready;
    const outcome = await autocannon({
      url: `${url}/v1/sessions/ses_01m7zs46t8atn5y12r8fhb0faf/navigate`,
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      body: JSON.stringify({ url: "https://example.com/order", wait_until: "load" }),
      connections,
      amount: requests,
    });
    const answered = outcome["2xx"];
    if (answered !== requests) throw new Error(`${answered} of ${requests} requests were answered with success`);
    return ((await this.#cpu()) - before) / requests;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const gone = once(this.#process, "exit");
    this.#process.disconnect();
    await gone;
  }

  async #cpu(): Promise<number> {
    const answer = once(this.#process, "message");
    this.#process.send("cpu");
    const [usage]: { user: number; system: number }[] = await answer;
    if (!usage) throw new Error("expected the CPU time of the server, got none");
    return usage.user + usage.system;
  }
}
