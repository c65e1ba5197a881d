import { Registry } from "prom-client";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createLocalBus } from "../../src/platform/bus.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import { judgeSample } from "../../src/status/board.ts";
import type { ComponentName, Health } from "../../src/status/components.ts";
import { createFeed } from "../../src/status/feed.ts";
import { insertIncident } from "../../src/status/incident-store.ts";
import { paceOf } from "../../src/status/judgement.ts";
import { createSampler } from "../../src/status/sampler.ts";
import { createSources } from "../../src/status/sources.ts";
import { readBoard, readSpans } from "../../src/status/store.ts";
import { silentLog, startTestDatabase, type TestDatabase } from "../support/database.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await startTestDatabase();
}, 60_000);
afterAll(() => database?.[Symbol.asyncDispose]());

const ids = createIds({ now: () => Date.now() });
const begin = Date.parse("2026-11-01T00:00:00Z");

beforeEach(async () => {
  const { sql } = database.db;
  for (const table of ["status_spans", "status_incidents", "status_gateways"] as const)
    await sql.deleteFrom(table).execute();
  await sql.updateTable("status_board").set({ judged_at: null, states: "{}" }).execute();
});

const healthy: Partial<Record<ComponentName, Health>> = { api: "operational", sessions: "operational" };

/** One sample of a gateway, in seconds after the start. */
function sample(second: number, found = healthy, { gateway = "one", countsAbsence = true } = {}): Promise<bigint> {
  // Object.keys loses the type of the keys.
  const components = Object.keys(found) as ComponentName[];
  const findings = components.flatMap((component) => {
    const health = found[component];
    return health && health !== "operational" ? [{ component, health }] : [];
  });
  const one = { at: begin + second * 1_000, facts: { components, findings, outcomes: [] } };
  return database.db.transaction((tx) => judgeSample(tx, gateway, one, { ids, pace: paceOf(), countsAbsence }));
}

const board = () => readBoard(database.db, new Date(begin));

/** Spans of a component in seconds after the start, oldest first. */
async function spans(component: ComponentName, until: number) {
  const all = await readSpans(database.db, new Date(begin), new Date(begin + until * 1_000));
  return all
    .filter((span) => span.component === component && span.from < span.to)
    .toSorted((one, other) => one.from - other.from)
    .map(({ health, from, to }) => [health, (from - begin) / 1_000, (to - begin) / 1_000]);
}

test("an incident opens with its components, changes with them, and closes when all are operational", async () => {
  await sample(0);
  const failing = { ...healthy, sessions: "major_outage" } as const;
  for (const second of [10, 20]) await sample(second, failing);
  for (const second of [30, 40]) await sample(second, { ...failing, api: "degraded" });
  for (const second of [50, 60, 70]) await sample(second);
  const { incidents } = await board();
  expect(incidents).toHaveLength(1);
  expect(incidents[0]).toMatchObject({
    title: "Sessions fail to start",
    health: "major_outage",
    components: ["api", "sessions"],
    startedAt: begin + 20_000,
    resolvedAt: begin + 70_000,
  });
  expect(incidents[0]?.updates.map(({ text }) => text)).toEqual([
    "The problem is resolved.",
    "API: slow, or failing at times.",
    "Sessions: down for all users.",
  ]);
  expect(await spans("sessions", 80)).toEqual([
    ["operational", 0, 20],
    ["major_outage", 20, 70],
    ["operational", 70, 80],
  ]);
});

test("the version changes exactly when the published status changes", async () => {
  const first = await sample(0);
  expect(await sample(10)).toBe(first);
  expect(await sample(20, { ...healthy, api: "degraded" })).toBe(first);
  expect(await sample(30, { ...healthy, api: "degraded" })).toBeGreaterThan(first);
});

test("time without samples counts as a major outage of all components, and as a past incident", async () => {
  await sample(0);
  await sample(600);
  await sample(610);
  for (const component of ["api", "sessions"] as const)
    expect(await spans(component, 620)).toEqual([
      ["major_outage", 0, 600],
      ["operational", 600, 620],
    ]);
  const { incidents } = await board();
  expect(incidents.map(({ title, startedAt, resolvedAt }) => [title, startedAt, resolvedAt])).toEqual([
    ["The service was unavailable", begin, begin + 600_000],
  ]);
});

test("time without samples is ignored when absence does not count", async () => {
  await sample(0, healthy, { countsAbsence: false });
  await sample(20, healthy, { countsAbsence: false });
  await sample(600, healthy, { countsAbsence: false });
  expect(await spans("api", 610)).toEqual([
    ["operational", 0, 20],
    ["operational", 600, 610],
  ]);
  expect((await board()).incidents).toEqual([]);
});

const announce = (from: number, to: number) =>
  database.db.transaction(async (tx) =>
    insertIncident(
      tx,
      {
        id: ids.next("inc"),
        origin: "maintenance",
        health: "maintenance",
        title: "A move",
        text: "We move.",
        components: ["sessions"],
        from: new Date(begin + from * 1_000),
        to: new Date(begin + to * 1_000),
      },
      new Date(begin),
    ),
  );

test("maintenance replaces the measured status in its time, and opens no incident", async () => {
  await announce(15, 45);
  const failing = { ...healthy, sessions: "major_outage" } as const;
  await sample(0);
  for (const second of [10, 20, 30]) await sample(second, failing);
  for (const second of [40, 50, 60]) await sample(second);
  expect(await spans("sessions", 70)).toEqual([
    ["operational", 0, 20],
    ["maintenance", 20, 50],
    ["major_outage", 50, 60],
    ["operational", 60, 70],
  ]);
  expect((await board()).incidents.map(({ title }) => title)).toContain("A move");
});

test("an announced absence counts only beyond the announced time", async () => {
  await announce(100, 500);
  await sample(90);
  await sample(600);
  expect(await spans("sessions", 610)).toEqual([
    ["major_outage", 90, 100],
    ["maintenance", 100, 500],
    ["major_outage", 500, 600],
    ["operational", 600, 610],
  ]);
  expect(await spans("api", 610)).toEqual([
    ["major_outage", 90, 600],
    ["operational", 600, 610],
  ]);
});

test("a gateway that stops sampling degrades the API until it returns or is forgotten", async () => {
  await sample(0, healthy, { gateway: "two" });
  for (let second = 0; second <= 360; second += 10) await sample(second + 1);
  const courses = await spans("api", 371);
  expect(courses).toEqual([
    ["operational", 0, 41],
    ["degraded", 41, 321],
    ["operational", 321, 371],
  ]);
});

test("samples of a PostgreSQL outage are evaluated in order when they are written", async () => {
  await sample(0);
  const away = { api: "major_outage", sessions: "major_outage" } as const;
  for (const second of [10, 20, 30, 40, 50]) await sample(second, away);
  // A second gateway later writes its samples of the same time, which are ignored.
  await sample(25, away, { gateway: "two" });
  for (const second of [60, 70, 80]) {
    await sample(second);
    await sample(second + 1, healthy, { gateway: "two" });
  }
  expect(await spans("api", 90)).toEqual([
    ["operational", 0, 20],
    ["major_outage", 20, 80],
    ["operational", 80, 90],
  ]);
});

test("a component without samples has no incident", async () => {
  for (const second of [0, 10]) await sample(second);
  await sample(20, { api: "operational" });
  expect(await spans("sessions", 30)).toEqual([["operational", 0, 20]]);
});

test("an incident is listed for 90 days after its end", async () => {
  const { db } = database;
  const now = Date.now();
  const day = 86_400_000;
  for (const days of [45, 200]) {
    const dates = { from: new Date(now - (days + 1) * day), to: new Date(now - days * day) };
    const incident = {
      ...dates,
      origin: "operator",
      health: "degraded",
      components: ["api"],
      text: "It is over.",
    } as const;
    const title = `${days} days ago`;
    await db.transaction(async (tx) => insertIncident(tx, { ...incident, id: ids.next("inc"), title }, dates.to));
  }
  const feed = createFeed();
  const check = async () => ({ components: [], findings: [], outcomes: [] });
  const sampler = createSampler({
    db,
    ids,
    feed,
    bus: createLocalBus(),
    clock: systemClock,
    log: silentLog,
    metrics: new Registry(),
    sources: { ...createSources(), check },
    pace: paceOf(),
    countsAbsence: false,
  });
  await sampler.start?.();
  await sampler.stop?.();
  expect(feed.now.incidents.map(({ title }) => title)).toEqual(["45 days ago"]);
});
