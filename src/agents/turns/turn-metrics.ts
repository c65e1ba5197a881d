import { Counter, type Registry } from "prom-client";
import type { TurnRow } from "./store.ts";

const microsPerDollar = 1_000_000;

export interface TurnMetrics {
  /** Counts a turn that has ended. */
  count(turn: TurnRow): void;
}

export function createTurnMetrics(registry: Registry): TurnMetrics {
  const registers = [registry];
  const counter = <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
    new Counter({ name: `pilothouse_agent_${name}`, help, labelNames, registers });
  const ended = counter("turns_ended_total", "Turns of agents that have ended, by status.", ["status"]);
  const steps = counter("steps_total", "Model steps of ended turns.");
  const tokens = counter("tokens_total", "Model tokens of ended turns, input and output.");
  const cost = counter("cost_dollars_total", "Cost of ended turns whose model has a known price, in US dollars.");
  const seconds = counter(
    "seconds_total",
    "Seconds of ended turns, by part: `model` (model calls), `settling` (pages after actions), `waiting` (for a person), `other` (all other work).",
    ["part"],
  );
  return {
    count(turn) {
      const [model, settling] = [Number(turn.model_ms), Number(turn.settling_ms)];
      ended.inc({ status: turn.status });
      steps.inc(turn.steps);
      tokens.inc(Number(turn.tokens));
      cost.inc(Number(turn.cost ?? 0) / microsPerDollar);
      const parts = {
        model,
        settling,
        waiting: Number(turn.waiting_ms),
        other: Number(turn.worked_ms) - model - settling,
      };
      for (const [part, ms] of Object.entries(parts)) seconds.inc({ part }, Math.max(0, ms) / 1_000);
    },
  };
}
