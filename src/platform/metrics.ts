import { collectDefaultMetrics, Registry } from "prom-client";
import { addUncaughtErrors } from "./last-resort.ts";
import { addBuildInfo } from "./release.ts";

/** Creates a separate registry, so that several Apps in a process do not share counters. */
export function createMetrics(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  addUncaughtErrors(registry);
  addBuildInfo(registry);
  return registry;
}
