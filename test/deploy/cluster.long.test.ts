import { rm } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { makeDataDirectory } from "../support/database.ts";
import { previousCommit } from "../support/previous-release.ts";
import { Cluster, missingForCluster } from "./cluster/cluster.ts";
import { buildServer, prepareImages, preparePreviousImages } from "./cluster/images.ts";
import { Installation, type LoadReport, slots, soon } from "./cluster/installation.ts";

const missing = missingForCluster();
if (missing !== undefined) {
  if (process.env.CI) throw new Error(missing);
  console.warn(missing);
}

/** Sessions and CDP clients during upgrades. They take 23 of the pool's 24 slots. */
const fullLoad = { sessions: 20, cdpClients: 3 };

let cluster: Cluster;
let pilot: Installation;
let directory = "";
let previous = "";
let servers: { postgres: string; redis: string };

beforeAll(async () => {
  if (missing !== undefined) return;
  directory = await makeDataDirectory();
  previous = (await previousCommit()).slice(0, 12);
  servers = { postgres: await buildServer("postgres"), redis: await buildServer("redis") };
  const images = [...(await prepareImages("cluster")), ...(await preparePreviousImages(previous))];
  cluster = new Cluster(directory, await buildServer("pause"), [...images, ...Object.values(servers)]);
  await cluster.start();
  const start = performance.now();
  pilot = await Installation.create(cluster, { namespace: "pilothouse", tag: "cluster", servers, directory });
  report("ready after the installation", start);
}, 3_600_000);

afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
  if (directory !== "") await rm(directory, { recursive: true, force: true });
}, 120_000);

/** Prints a duration, for docs/scaling.md. */
function report(what: string, start: number): void {
  console.info(`${what}: ${((performance.now() - start) / 1_000).toFixed(1)} s`);
}

const navigate = (id: string) => pilot.call(`/v1/sessions/${id}/navigate`, { url: "about:blank" });
const end = (id: string) => pilot.call(`/v1/sessions/${id}`, undefined, "DELETE");

/** Expects that load was held, and that no request failed. */
function expectUnharmed(load: LoadReport): void {
  console.info("load:", JSON.stringify({ ...load, failures: load.failures.length }));
  expect(load.failures).toEqual([]);
  expect(load.connections).toBeGreaterThan(100);
}

describe.skipIf(missing !== undefined)("the chart on a cluster", { timeout: 900_000 }, () => {
  test("workers isolate sessions in namespaces and sandbox renderers", async () => {
    const all = await pilot.readWorkers();
    expect(all.length).toBe(2);
    for (const { metrics } of all)
      expect(metrics).toContain('pilothouse_worker_isolation{isolation="namespace",browser_sandbox="on"} 1');
  });

  test("a session is created, driven and pictured through the Service", async () => {
    const id = await pilot.createSession();
    expect(await navigate(id)).toMatchObject({ status: 200 });
    const picture = await pilot.call(`/v1/sessions/${id}/capture`, { kind: "screenshot" });
    expect(Buffer.from(picture.body.data, "base64").subarray(1, 4).toString()).toBe("PNG");
    const inside = await pilot.call(`/v1/sessions/${id}/navigate`, { url: `${pilot.url}/status` });
    expect(inside.body).toMatchObject({ blocked_by: "egress" });
    await end(id);
  });

  test("a rollout of the gateways fails no request", async () => {
    const load = await pilot.duringLoad({ sessions: 4 }, () => pilot.restartGateways());
    expectUnharmed(load);
  });

  test("a deleted worker ends no session, and leaves after the last one", async () => {
    const id = await pilot.createSession();
    const busy = (await pilot.readWorkers()).find(({ sessions }) => sessions === 1);
    await pilot.ofWorkers("delete", `pod/${busy?.name}`, "--wait=false");
    await pilot.rolledOut();
    expect(await navigate(id)).toMatchObject({ status: 200 });
    await end(id);
    await pilot.ofWorkers("wait", "--for=delete", `pod/${busy?.name}`, "--timeout=60s");
  });

  test("an eviction ends no session, and the budget leaves half of the workers", async () => {
    const ids = [await pilot.createSession(), await pilot.createSession()];
    const before = await pilot.readWorkers();
    expect(before.map(({ sessions }) => sessions)).toEqual([1, 1]);
    const uncordon = () => cluster.kubectl("uncordon", "node");
    onTestFinished(async () => void (await uncordon()));
    const select = ["--pod-selector", "app.kubernetes.io/component=worker", "--delete-emptydir-data"];
    const drained = cluster.kubectl("drain", "node", ...select, "--ignore-daemonsets", "--timeout", "15s");
    await expect(drained).rejects.toThrow("would violate the pod's disruption budget");
    const [kept, ...others] = await pilot.readWorkers();
    expect(others).toEqual([]);
    await uncordon();
    await pilot.rolledOut();
    // With the replacement ready, the budget permits the second eviction.
    const metadata = { name: kept?.name, namespace: pilot.workerNamespace };
    const eviction = JSON.stringify({ apiVersion: "policy/v1", kind: "Eviction", metadata });
    const path = `/api/v1/namespaces/${pilot.workerNamespace}/pods/${kept?.name}/eviction`;
    await cluster.run(["kubectl", "create", "--raw", path, "--filename", "-"], eviction);
    for (const id of ids) expect(await navigate(id)).toMatchObject({ status: 200 });
    for (const id of ids) await end(id);
    for (const { name } of before) await pilot.ofWorkers("wait", "--for=delete", `pod/${name}`, "--timeout=60s");
    await pilot.rolledOut();
  });

  test("KEDA removes the idle worker when it is quiet, and adds one in a burst", async () => {
    const ids = [await pilot.createSession()];
    const isMarked = async () => {
      const [idle, busy] = (await pilot.readWorkers()).sort((one, other) => one.sessions - other.sessions);
      return busy?.sessions === 1 && busy.deletionCost > (idle?.deletionCost ?? 0);
    };
    expect(await waitUntil(isMarked, soon)).toBe(true);
    const { workers } = pilot.values;
    await pilot.upgrade({ ...pilot.values, workers: { ...workers, defaults: { ...workers.defaults, replicas: 1 } } });
    expect(await pilot.hasWorkers(1)).toBe(true);
    expect(await navigate(ids[0] ?? "")).toMatchObject({ status: 200 });
    const start = performance.now();
    while (ids.length < slots) ids.push(await pilot.createSession());
    expect(await pilot.hasWorkers(2)).toBe(true);
    report("worker ready after the start of a burst", start);
    ids.push(await pilot.createSession());
    expect((await pilot.readWorkers()).every(({ sessions }) => sessions > 0)).toBe(true);
    for (const id of ids) expect(await navigate(id)).toMatchObject({ status: 200 });
    await pilot.upgrade(pilot.values);
    await Promise.all(ids.map(end));
  });

  test("an upgrade and its rollback lose no session and fail no request", async () => {
    const changed = {
      ...pilot.values,
      config: { QUEUE_MS: "4000" },
      workers: { ...pilot.values.workers, config: { CLOSE_AT_CPU: "99", CLOSE_AT_MEMORY: "100" } },
    };
    const load = await pilot.duringLoad(fullLoad, async () => {
      await pilot.upgrade(changed);
      await pilot.rollBack();
    });
    expectUnharmed(load);
    // Each client was connected to a gateway that ended, at least once.
    expect(load.reconnects).toBeGreaterThanOrEqual(fullLoad.cdpClients);
    // Workers of the first revisions have left with their sessions.
    expect(await pilot.hasWorkers(2)).toBe(true);
  });

  test("an upgrade from the previous release and a rollback lose no session", async () => {
    await pilot.uninstall();
    pilot = await Installation.create(cluster, { namespace: "previous", tag: previous, servers, directory });
    const image = { ...pilot.values.image, tag: "cluster" };
    // Gateways without SHUTDOWN_DELAY refuse connections that are routed to them while they end.
    const load = await pilot.duringLoad({ ...fullLoad, repeats: 2 }, async () => {
      await pilot.upgrade({ ...pilot.values, image });
      await pilot.rollBack();
    });
    expectUnharmed(load);
  });
});
