import { readFileSync } from "node:fs";
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { expect, test } from "vitest";
import { createMetrics } from "../../src/platform/metrics.ts";
import { createRedis } from "../../src/platform/redis/redis.ts";
import type { PressureWatch } from "../../workers/pressure/pressure-watch.ts";
import { createWorkerMetrics } from "../../workers/worker-metrics.ts";
import { silentLog } from "../support/database.ts";
import { startTestGateway } from "../support/test-gateway.ts";

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

const read = (name: string) =>
  JSON.parse(readFileSync(new URL(`../../deploy/grafana/${name}`, import.meta.url), "utf8"));
const panels: readonly Panel[] = read("dashboard.json").panels;
const alerts: readonly { alert: string; expr: string; annotations: { summary: string } }[] =
  read("alerts.json").groups[0].rules;

const queries = [
  ...panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr, legendFormat }) => ({ name: title, expr, text: legendFormat })),
  ),
  ...alerts.map(({ alert, expr, annotations }) => ({
    name: alert,
    expr,
    text: annotations.summary.replaceAll("$labels.", ""),
  })),
];

/** Names of samples and their labels, as registered. */
function samplesOf(...registries: readonly Registry[]): Map<string, readonly string[]> {
  const samples = new Map<string, readonly string[]>();
  for (const registry of registries)
    for (const { name } of registry.getMetricsAsArray()) {
      const metric = registry.getSingleMetric(name);
      const isKnown = metric instanceof Counter || metric instanceof Gauge || metric instanceof Histogram;
      // A field of prom-client without a type.
      const labels = isKnown ? (metric as unknown as { readonly labelNames: readonly string[] }).labelNames : [];
      samples.set(name, labels);
      if (metric instanceof Histogram) {
        samples.set(`${name}_bucket`, [...labels, "le"]);
        samples.set(`${name}_count`, labels);
      }
    }
  return samples;
}

/** Registers the metrics of a worker, of which none is read. */
function workerRegistry(): Registry {
  const absent = () => {
    throw new Error("expected no value to be read");
  };
  const worker = createWorkerMetrics({
    sessions: absent,
    browsers: absent,
    fetches: absent,
    // Values are read only when metrics are collected.
    slots: {} as Parameters<typeof createWorkerMetrics>[0]["slots"],
    isolation: { isolation: "namespace", browserSandbox: "on" },
  });
  worker.registerPressure({} as PressureWatch);
  return worker.registry;
}

/** The supervisor registers its metric within its program. */
function supervisorRegistry(): Registry {
  const program = readFileSync(new URL("../../gateway/processes/supervisor-process.ts", import.meta.url), "utf8");
  const name = "pilothouse_process_restarts_total";
  expect(program).toContain(`name: "${name}"`);
  expect(program).toContain('labelNames: ["process"]');
  const registry = new Registry();
  new Counter({ name, help: "Restarts.", labelNames: ["process"], registers: [registry] });
  return registry;
}

/** Labels that Prometheus or our processes add to every sample. */
const common = ["instance", "role"];

test("every query of the dashboard and the alerts uses metrics and labels that exist", async () => {
  await using gateway = await startTestGateway();
  const withRedis = createMetrics();
  createRedis({ url: "redis://127.0.0.1:1", log: silentLog, registry: withRedis });
  const samples = samplesOf(gateway.running.app.metrics, withRedis, supervisorRegistry(), workerRegistry());
  expect(queries.length).toBeGreaterThan(40);
  for (const { name, expr, text } of queries) {
    const used = [...expr.matchAll(/\b(?:pilothouse|process|nodejs)_[a-z0-9_]+/g)].map(([metric]) => metric);
    expect(used, name).not.toEqual([]);
    const labels = new Set(common);
    for (const metric of used) {
      expect([...samples.keys()], `${name}: ${metric}`).toContain(metric);
      for (const label of samples.get(metric) ?? []) labels.add(label);
    }
    const grouped = [...expr.matchAll(/ by \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(", "));
    const matched = [...expr.matchAll(/([a-z_]+)(?:!=|=~|=)"/g)].map(([, label = ""]) => label);
    const shown = [...text.matchAll(/\{\{ ?([a-z_]+) ?\}\}/g)].map(([, label = ""]) => label);
    for (const label of [...grouped, ...matched, ...shown]) expect([...labels], `${name}: ${label}`).toContain(label);
  }
});

test("the alerts that docs/scaling.md lists are rules, and the rules are listed", () => {
  const page = readFileSync(new URL("../../docs/scaling.md", import.meta.url), "utf8");
  const section = page.slice(page.indexOf("## Alerts"), page.indexOf("\n## ", page.indexOf("## Alerts") + 1));
  const listed = [...section.matchAll(/^\| `(pilothouse_[a-z_]+)`/gm)].map(([, metric = ""]) => metric);
  const ruled = alerts.flatMap(({ expr }) => [...expr.matchAll(/pilothouse_[a-z_]+/g)].map(([metric]) => metric));
  const base = (metric: string) => metric.replace(/_bucket$/, "");
  expect(new Set(ruled.map(base))).toEqual(new Set(listed));
});
