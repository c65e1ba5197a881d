import { once } from "node:events";
import { chmod, mkdir, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { makeDataDirectory } from "../support/database.ts";
import { buildImage, podman } from "../support/podman.ts";
import { Cluster, missingForCluster } from "./cluster/cluster.ts";
import { helmProgram } from "./helm.ts";

const missing = missingForCluster();
if (missing !== undefined) {
  if (process.env.CI) throw new Error(missing);
  console.warn(missing);
}

const chart = resolve(import.meta.dirname, "../../deploy/helm");
const namespace = "pilothouse";
const workerNamespace = "pilothouse-workers";
const gateways = "deployment/pilot-pilothouse-gateway";
const workers = "deployment/pilot-pilothouse-worker-default";
const component = "app.kubernetes.io/component";
const small = { cpu: "10m", memory: "128Mi" };

/** Values for a node of two cores. Other work on the machine closes no worker. */
const values = (images: { postgres: string; redis: string }) => ({
  publicUrl: "http://127.0.0.1:8080",
  image: { registry: "localhost", tag: "cluster" },
  postgresql: { enabled: true, image: images.postgres, storage: "1Gi" },
  redis: { enabled: true, image: images.redis },
  control: { resources: { requests: small, limits: { memory: "512Mi" } } },
  gateways: { autoscaling: { enabled: false }, resources: { requests: small, limits: { memory: "1536Mi" } } },
  workers: {
    config: { CLOSE_AT_CPU: "100", CLOSE_AT_MEMORY: "100" },
    defaults: {
      longestSession: 600,
      slots: 4,
      resources: { requests: small, limits: { memory: "4Gi" } },
      storage: { data: "1Gi", temporary: "1Gi", sharedMemory: "1Gi" },
    },
  },
});

let cluster: Cluster;
let directory = "";
let chartValues: ReturnType<typeof values>;
let url = "";
let key = "";

beforeAll(async () => {
  if (missing !== undefined) return;
  directory = await makeDataDirectory();
  const server = (target: string) => buildImage("test/deploy/servers/Dockerfile", "test/deploy/servers", target);
  const { GATEWAY_IMAGE, WORKER_IMAGE } = process.env;
  const named = ["localhost/pilothouse-gateway:cluster", "localhost/pilothouse-worker:cluster"] as const;
  await podman("tag", GATEWAY_IMAGE ?? (await buildImage("deploy/Dockerfile", ".", "gateway")), named[0]);
  await podman("tag", WORKER_IMAGE ?? (await buildImage("deploy/Dockerfile", ".", "worker")), named[1]);
  const images = { postgres: await server("postgres"), redis: await server("redis") };
  chartValues = values(images);
  cluster = new Cluster(directory, await server("pause"), [...named, ...Object.values(images)]);
  await cluster.start();
  const disk = join(directory, "database");
  await mkdir(disk);
  await chmod(disk, 0o777);
  await cluster.apply(
    {
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name: "database" },
      spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], hostPath: { path: disk } },
    },
    {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: namespace, labels: { "pod-security.kubernetes.io/enforce": "restricted" } },
    },
  );
  await cluster.helm(["install", "pilot", chart, "--namespace", namespace, "--wait", "--timeout", "10m"], chartValues);
  const command = ["sh", "deploy/entry.sh", "admin", "create-key", "--account", "Acme", "--tier", "api_scale"];
  const control = "deployment/pilot-pilothouse-control";
  key = await cluster.kubectl("exec", "--namespace", namespace, control, "--", ...command);
  const service = ["service/pilot-pilothouse", "--output", "jsonpath={.spec.clusterIP}"];
  url = `http://${await cluster.kubectl("get", "--namespace", namespace, ...service)}`;
}, 3_600_000);

afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
  if (directory !== "") await rm(directory, { recursive: true, force: true });
}, 120_000);

/** Calls the API through the Service. */
async function call(path: string, body?: object, method = body ? "POST" : "GET") {
  const headers = ["--header", `authorization: Bearer ${key}`, "--header", "content-type: application/json"];
  const options = ["--silent", "--max-time", "60", "--request", method, "--write-out", "\n%{http_code}", ...headers];
  const sent = body ? ["--data", JSON.stringify(body)] : [];
  const lines = (await cluster.run(["curl", ...options, ...sent, `${url}${path}`])).split("\n");
  const status = Number(lines.pop());
  const text = lines.join("\n");
  return { status, body: text === "" ? undefined : JSON.parse(text) };
}

interface Pod {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
  readonly status: { readonly podIP: string };
}

/** Returns the names of the pods of workers that are not ending, with their metrics. */
async function readWorkers(): Promise<Map<string, string>> {
  const select = ["pods", "--namespace", workerNamespace, "--selector", `${component}=worker`];
  const { items } = JSON.parse(await cluster.kubectl("get", ...select, "--output", "json")) as { items: Pod[] };
  const pods = items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const read = async ({ metadata, status }: Pod) =>
    [metadata.name, await cluster.run(["curl", "--silent", `http://${status.podIP}:8082/metrics`])] as const;
  return new Map(await Promise.all(pods.map(read)));
}

const rolledOut = (what: string, where = namespace) =>
  cluster.kubectl("rollout", "status", "--namespace", where, what, "--timeout", "5m");

/** Holds load on the Service during an action. Returns what was sent, and what failed. */
async function duringLoad(action: () => Promise<unknown>) {
  const script = resolve(import.meta.dirname, "cluster/load.ts");
  const load = cluster.spawn(process.execPath, "--no-warnings", script, url, key, "4");
  const lines = createInterface({ input: load.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  load.stderr?.on("data", (text: Buffer) => process.stderr.write(text));
  const exited = once(load, "exit");
  expect((await lines.next()).value).toBe("started");
  await action();
  load.stdin?.end();
  const { value = "{}" } = await lines.next();
  await exited;
  return JSON.parse(value) as { connections: number; commands: number; failures: string[] };
}

describe.skipIf(missing !== undefined)("the chart on a cluster", { timeout: 900_000 }, () => {
  test("workers isolate sessions in namespaces and sandbox renderers", async () => {
    const all = await readWorkers();
    expect(all.size).toBe(2);
    for (const metrics of all.values())
      expect(metrics).toContain('pilothouse_worker_isolation{isolation="namespace",browser_sandbox="on"} 1');
  });

  test("a session is created, driven and pictured through the Service", async () => {
    const { status, body } = await call("/v1/sessions", {});
    expect(status).toBe(201);
    expect(await call(`/v1/sessions/${body.id}/navigate`, { url: "about:blank" })).toMatchObject({ status: 200 });
    const picture = await call(`/v1/sessions/${body.id}/capture`, { kind: "screenshot" });
    expect(Buffer.from(picture.body.data, "base64").subarray(1, 4).toString()).toBe("PNG");
    const inside = await call(`/v1/sessions/${body.id}/navigate`, { url: `${url}/status` });
    expect(inside.body).toMatchObject({ blocked_by: "egress" });
    await call(`/v1/sessions/${body.id}`, undefined, "DELETE");
  });

  test("a rollout of the gateways fails no request", async () => {
    const { connections, failures } = await duringLoad(async () => {
      await cluster.kubectl("rollout", "restart", "--namespace", namespace, gateways);
      await rolledOut(gateways);
    });
    expect(failures).toEqual([]);
    expect(connections).toBeGreaterThan(100);
  });

  test("a deleted worker ends no session, and leaves after the last one", async () => {
    const { body } = await call("/v1/sessions", { timeout_seconds: 600 });
    const busy = [...(await readWorkers())].find(([, metrics]) => metrics.includes("pilothouse_worker_sessions 1"));
    const pod = `pod/${busy?.[0]}`;
    await cluster.kubectl("delete", "--namespace", workerNamespace, pod, "--wait=false");
    await rolledOut(workers, workerNamespace);
    expect(await call(`/v1/sessions/${body.id}/navigate`, { url: "about:blank" })).toMatchObject({ status: 200 });
    await call(`/v1/sessions/${body.id}`, undefined, "DELETE");
    await cluster.kubectl("wait", "--namespace", workerNamespace, "--for=delete", pod, "--timeout=60s");
  });

  test("an upgrade and its rollback lose no session and fail no request", async () => {
    const changed = {
      ...chartValues,
      config: { QUEUE_MS: "4000" },
      workers: { ...chartValues.workers, config: { CLOSE_AT_CPU: "99", CLOSE_AT_MEMORY: "100" } },
    };
    const all = async () => {
      for (const what of ["deployment/pilot-pilothouse-control", gateways]) await rolledOut(what);
      await rolledOut(workers, workerNamespace);
    };
    const { failures } = await duringLoad(async () => {
      await cluster.helm(["upgrade", "pilot", chart, "--namespace", namespace], changed);
      await all();
      await cluster.run([helmProgram, "rollback", "pilot", "--namespace", namespace]);
      await all();
    });
    expect(failures).toEqual([]);
    // Workers of the first revisions have left with their sessions.
    const isSettled = async () => (await readWorkers()).size === 2;
    expect(await waitUntil(isSettled, { timeout: 120_000, every: 1_000 })).toBe(true);
  });
});
