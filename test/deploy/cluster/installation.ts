import { once } from "node:events";
import { chmod, mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { waitUntil } from "../../../src/platform/bounded-wait.ts";
import { helmProgram } from "../helm.ts";
import type { Cluster } from "./cluster.ts";

const chart = resolve(import.meta.dirname, "../../../deploy/helm");
const loadProgram = resolve(import.meta.dirname, "load/main.ts");
const release = "pilot";
const component = "app.kubernetes.io/component";

/** Requests of pods, so that a machine of two cores holds all of them. */
const small = { cpu: "10m", memory: "128Mi" };

/** Sessions that a worker of the tests takes. */
export const slots = 12;

/** Limits of waits for a change of workers. */
export const soon = { timeout: 120_000, every: 1_000 };

/** Values for a node of two cores with two workers. Other work on the machine closes no worker. */
const valuesOf = (servers: { readonly postgres: string; readonly redis: string }, tag: string) => ({
  publicUrl: "http://127.0.0.1:8080",
  image: { registry: "localhost", tag },
  postgresql: { enabled: true, image: servers.postgres, storage: "1Gi" },
  redis: { enabled: true, image: servers.redis },
  control: { resources: { requests: small, limits: { memory: "512Mi" } } },
  gateways: { autoscaling: { enabled: false }, resources: { requests: small, limits: { memory: "1536Mi" } } },
  workers: {
    config: { CLOSE_AT_CPU: "100", CLOSE_AT_MEMORY: "100" },
    defaults: {
      longestSession: 900,
      slots,
      resources: { requests: small, limits: { memory: "6Gi" } },
      storage: { data: "2Gi", temporary: "2Gi", sharedMemory: "2Gi" },
      replicas: 2,
      autoscaling: { maxReplicas: 2, cooldown: 5 },
    },
  },
});

/** Values of an installation. */
export type ChartValues = ReturnType<typeof valuesOf>;

interface Pod {
  readonly metadata: {
    readonly name: string;
    readonly deletionTimestamp?: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly status: {
    readonly podIP: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

/** Ready pod of a worker. */
export interface WorkerPod {
  readonly name: string;
  readonly metrics: string;
  readonly sessions: number;
  readonly deletionCost: number;
}

/** Load on the Service of an installation. */
export interface LoadOptions {
  readonly sessions?: number;
  readonly cdpClients?: number;
  /** Repeats of a request whose new connection failed. */
  readonly repeats?: number;
}

/** Counts and failures of load. */
export interface LoadReport {
  readonly connections: number;
  readonly commands: number;
  readonly events: number;
  readonly reconnects: number;
  readonly repeats: number;
  readonly failures: readonly string[];
}

/** The chart, installed in a namespace of a cluster. */
export class Installation {
  readonly values: ChartValues;
  readonly namespace: string;
  readonly workerNamespace: string;
  readonly workers: string = `deployment/${release}-pilothouse-worker-default`;
  readonly gateways: string = `deployment/${release}-pilothouse-gateway`;
  readonly #control = `deployment/${release}-pilothouse-control`;
  readonly #cluster: Cluster;
  #url = "";
  #key = "";

  private constructor(cluster: Cluster, namespace: string, values: ChartValues) {
    this.#cluster = cluster;
    this.namespace = namespace;
    this.workerNamespace = `${namespace}-workers`;
    this.values = values;
  }

  /**
   * Installs the chart with images of a tag, waits until KEDA has added the second worker, and creates a key. The database
   * is in a directory of its own.
   */
  static async create(
    cluster: Cluster,
    options: { namespace: string; tag: string; servers: { postgres: string; redis: string }; directory: string },
  ): Promise<Installation> {
    const { namespace, tag, servers, directory } = options;
    const made = new Installation(cluster, namespace, valuesOf(servers, tag));
    const disk = join(directory, `database-${namespace}`);
    await mkdir(disk);
    await chmod(disk, 0o777);
    const spec = { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], hostPath: { path: disk } };
    const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
    await cluster.apply(
      { apiVersion: "v1", kind: "PersistentVolume", metadata: { name: `database-${namespace}` }, spec },
      { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace, labels } },
    );
    const words = ["install", release, chart, "--namespace", namespace, "--wait", "--timeout", "10m"];
    await cluster.helm(words, made.values);
    if (!(await made.hasWorkers(2))) throw new Error("expected an autoscaler that creates the second worker");
    const command = ["admin", "create-key", "--account", "Acme", "--tier", "enterprise"];
    made.#key = await made.#kubectl("exec", made.#control, "--", "sh", "deploy/entry.sh", ...command);
    const service = `service/${release}-pilothouse`;
    made.#url = `http://${await made.#kubectl("get", service, "--output", "jsonpath={.spec.clusterIP}")}`;
    return made;
  }

  get url(): string {
    return this.#url;
  }

  #kubectl(command: string, ...words: readonly string[]): Promise<string> {
    return this.#cluster.kubectl(command, "--namespace", this.namespace, ...words);
  }

  /** Runs kubectl in the namespace of the workers. */
  ofWorkers(command: string, ...words: readonly string[]): Promise<string> {
    return this.#cluster.kubectl(command, "--namespace", this.workerNamespace, ...words);
  }

  /** Calls the API through the Service. A body makes the request a POST. */
  async call(path: string, body?: object, method: string = body ? "POST" : "GET") {
    const headers = ["--header", `authorization: Bearer ${this.#key}`, "--header", "content-type: application/json"];
    const options = ["--silent", "--max-time", "60", "--request", method, "--write-out", "\n%{http_code}", ...headers];
    const sent = body ? ["--data", JSON.stringify(body)] : [];
    const lines = (await this.#cluster.run(["curl", ...options, ...sent, `${this.#url}${path}`])).split("\n");
    const status = Number(lines.pop());
    const text = lines.join("\n");
    return { status, body: text === "" ? undefined : JSON.parse(text) };
  }

  async createSession(): Promise<string> {
    const { status, body } = await this.call("/v1/sessions", { timeout_seconds: 600 });
    if (status !== 201) throw new Error(`expected 201, got ${status}: ${JSON.stringify(body)}`);
    return body.id;
  }

  /** Returns the ready pods of a component that do not end. */
  async #pods(namespace: string, name: string): Promise<Pod[]> {
    const words = ["pods", "--namespace", namespace, "--selector", `${component}=${name}`, "--output", "json"];
    const { items } = JSON.parse(await this.#cluster.kubectl("get", ...words)) as { items: Pod[] };
    const isReady = ({ status }: Pod) =>
      status.conditions?.some((each) => each.type === "Ready" && each.status === "True");
    return items.filter((pod) => pod.metadata.deletionTimestamp === undefined && isReady(pod));
  }

  /** Returns the workers that take sessions. */
  async readWorkers(): Promise<WorkerPod[]> {
    const read = async ({ metadata, status }: Pod): Promise<WorkerPod> => {
      const metrics = await this.#cluster.run(["curl", "--silent", `http://${status.podIP}:8082/metrics`]);
      const sessions = Number(/^pilothouse_worker_sessions (\d+)/m.exec(metrics)?.[1]);
      const deletionCost = Number(metadata.annotations?.["controller.kubernetes.io/pod-deletion-cost"] ?? 0);
      return { name: metadata.name, metrics, sessions, deletionCost };
    };
    return Promise.all((await this.#pods(this.workerNamespace, "worker")).map(read));
  }

  /** Waits until this number of workers takes sessions. Returns false if that takes more than two minutes. */
  hasWorkers(count: number): Promise<boolean> {
    return waitUntil(async () => (await this.readWorkers()).length === count, soon);
  }

  /** Waits until all processes are those of the last revision. */
  async rolledOut(): Promise<void> {
    const status = ["status", "--timeout", "5m"];
    for (const each of [this.#control, this.gateways]) await this.#kubectl("rollout", ...status, each);
    await this.ofWorkers("rollout", ...status, this.workers);
  }

  async restartGateways(): Promise<void> {
    await this.#kubectl("rollout", "restart", this.gateways);
    await this.rolledOut();
  }

  async upgrade(values: object): Promise<void> {
    await this.#cluster.helm(["upgrade", release, chart, "--namespace", this.namespace], values);
    await this.rolledOut();
  }

  async rollBack(): Promise<void> {
    await this.#cluster.run([helmProgram, "rollback", release, "--namespace", this.namespace]);
    await this.rolledOut();
  }

  async uninstall(): Promise<void> {
    const words = ["uninstall", release, "--namespace", this.namespace, "--wait", "--timeout", "5m"];
    await this.#cluster.run([helmProgram, ...words]);
  }

  /** Holds load on the Service during an action. */
  async duringLoad(options: LoadOptions, action: () => Promise<unknown>): Promise<LoadReport> {
    const { sessions = 4, cdpClients = 0, repeats = 0 } = options;
    const words = [loadProgram, this.#url, this.#key, ...[sessions, cdpClients, repeats].map(String)];
    const load = this.#cluster.spawn(process.execPath, "--no-warnings", ...words);
    const lines = createInterface({ input: load.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
    load.stderr?.on("data", (text: Buffer) => process.stderr.write(text));
    const exited = once(load, "exit");
    const { value: started } = await lines.next();
    if (started !== "started") throw new Error(`expected load to start, got ${started}`);
    try {
      await action();
    } finally {
      load.stdin?.end();
    }
    const { value: report } = await lines.next();
    const [code] = await exited;
    if (report === undefined) throw new Error(`expected a report of the load, got exit code ${code}`);
    return JSON.parse(report);
  }
}
