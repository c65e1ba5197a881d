import { Counter, Histogram } from "prom-client";
import type { App } from "../src/app/app.ts";
import { asFailure } from "../src/platform/errors.ts";
import type { GatewayCall } from "./call.ts";

/** Counts what becomes of calls. */
export interface CallMetrics {
  /** Notes the end of a call, with what was thrown if it failed; false when that was noted before. */
  end(call: GatewayCall, thrown?: unknown): boolean;
}

/** Makes the metrics of all doors. What calls end with is told to the status as well. */
export function createCallMetrics({ metrics: registry, status }: Pick<App, "metrics" | "status">): CallMetrics {
  const registers = [registry];
  const calls = new Counter({
    name: "pilothouse_calls_total",
    help: "Calls that have ended, by method and by the problem that they ended with, if any.",
    labelNames: ["method", "problem"],
    registers,
  });
  const seconds = new Histogram({
    name: "pilothouse_call_seconds",
    help: "Seconds from the headers of a call to its end; of streams, how long they were open.",
    labelNames: ["method"],
    buckets: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1_000, 3_000],
    registers,
  });
  return {
    end(call, thrown) {
      if (call.isOver) return false;
      call.isOver = true;
      const method = call.served.name;
      const problem = thrown === undefined ? "none" : asFailure(thrown).slug;
      calls.inc({ method, problem });
      status.noteAnswer(call.served.method.parent.name, problem === "internal", call.accountId);
      seconds.observe({ method }, (performance.now() - call.startedAt) / 1_000);
      return true;
    },
  };
}
