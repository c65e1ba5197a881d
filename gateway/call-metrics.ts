import { Counter, Histogram } from "prom-client";
import type { App } from "../src/app/app.ts";
import { asFailure } from "../src/platform/errors.ts";
import type { GatewayCall } from "./gateway-call.ts";

/** Records the ends of calls: their number, outcomes and durations. */
export interface CallMetrics {
  /** Records the end of a call and its error, if any. Returns false if the end was already recorded. */
  end(call: GatewayCall, thrown?: unknown): boolean;
}

/** Creates the call metrics of all transports. Also reports each outcome to the status feature. */
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
      call.problem = thrown === undefined ? undefined : asFailure(thrown).slug;
      calls.inc({ method, problem: call.problem ?? "none" });
      status.countResponse(call.served.method.parent.name, call.problem === "internal", call.accountId);
      call.endSpan(call.problem);
      seconds.observe({ method }, (performance.now() - call.startedAt) / 1_000);
      return true;
    },
  };
}
