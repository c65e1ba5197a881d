import { collectDefaultMetrics, Registry } from "prom-client";
import { addUncaughtErrors } from "./last-resort.ts";

/** Makes a registry of its own, so that several Apps in one process do not share counters. Features add their metrics. */
export function createMetrics(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  addUncaughtErrors(registry);
  return registry;
}
