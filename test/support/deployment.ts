import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { createEmbeddedPostgres, type EmbeddedPostgres } from "../../src/platform/postgres/embedded-postgres.ts";
import { endProcess } from "../../src/platform/process-control.ts";
import { admin } from "./admin.ts";
import { forgetful, makeClusterDirectory, silentLog } from "./database.ts";
import { DeployedProcess } from "./deployed-process.ts";
import { FakeWorker, type FakeWorkerOptions } from "./fake-worker.ts";
import { freePorts } from "./free-port.ts";
import { descendantsOf, isStillThere } from "./process-list.ts";
import { RedisServer } from "./redis-server.ts";
import { type Rest, restClient } from "./rest.ts";
import { testSecretsKeys } from "./secrets-keys.ts";

export interface DeploymentOptions {
  /** Extra environment of each gateway; one entry per gateway. */
  readonly gateways?: readonly Record<string, string>[];
  readonly controls?: number;
  readonly workers?: number;
  /** Slots of each worker. */
  readonly slots?: number;
  /** Extra environment of all gateways and of all workers. */
  readonly gatewayEnv?: Record<string, string>;
  readonly workerEnv?: Record<string, string>;
  /** URL of a database server that the test starts and stops. By default the deployment has its own. */
  readonly databaseUrl?: string;
  /** URL of Redis servers that the test starts and stops, which the processes use instead of `redis`. */
  readonly redisUrl?: string | undefined;
  /** Checkouts that the processes of a kind run, if they do not run this one. */
  readonly roots?: { readonly control?: string; readonly gateway?: string; readonly worker?: string };
}

export interface DeployedGateway extends DeployedProcess {
  readonly url: string;
  readonly grpcAddress: string;
  readonly internalUrl: string;
  /** Calls the gateway's REST API with the deployment's key. */
  readonly rest: Rest;
}

export interface DeployedControl extends DeployedProcess {
  readonly internalUrl: string;
  /** Address for workers. */
  readonly fleetAddress: string;
}

export interface DeployedWorker extends DeployedProcess {
  readonly internalUrl: string;
}

const token = "a token of the tests alone";

/** All processes of a distributed service on one machine. Each can be killed and restarted separately. */
export class Deployment implements AsyncDisposable {
  readonly redis: RedisServer;
  readonly postgres: PostgresServer;
  readonly controls: DeployedControl[] = [];
  readonly gateways: DeployedGateway[] = [];
  readonly workers: DeployedWorker[] = [];
  readonly fakeWorkers: FakeWorker[] = [];
  readonly dataDir: string;
  readonly databaseUrl: string;
  key = "";
  readonly #redisUrl: string;

  private constructor(dataDir: string, redis: RedisServer, postgres: PostgresServer, options: DeploymentOptions) {
    this.dataDir = dataDir;
    this.databaseUrl = options.databaseUrl ?? postgres.url;
    this.#redisUrl = options.redisUrl ?? redis.url;
    this.redis = redis;
    this.postgres = postgres;
  }

  /** Starts all processes and creates a key of the highest tier by an operator command. */
  static async start(options: DeploymentOptions = {}): Promise<Deployment> {
    const dataDir = await makeClusterDirectory();
    const postgres = new PostgresServer(dataDir);
    const { databaseUrl } = options;
    const [redis] = await Promise.all([RedisServer.start(), databaseUrl ? undefined : postgres.start()]);
    const deployment = new Deployment(dataDir, redis, postgres, options);
    try {
      await deployment.#startProcesses(options);
      return deployment;
    } catch (error) {
      await deployment[Symbol.asyncDispose]();
      throw error;
    }
  }

  gateway(index: number): DeployedGateway {
    const gateway = this.gateways[index];
    if (!gateway) throw new Error(`the deployment has no gateway ${index}`);
    return gateway;
  }

  control(index: number): DeployedControl {
    const control = this.controls[index];
    if (!control) throw new Error(`the deployment has no control process ${index}`);
    return control;
  }

  worker(index: number): DeployedWorker {
    const worker = this.workers[index];
    if (!worker) throw new Error(`the deployment has no worker ${index}`);
    return worker;
  }

  /** Environment that a process needs to reach the shared servers. */
  get sharedEnv(): Record<string, string> {
    const servers = { DATABASE_URL: this.databaseUrl, REDIS_URL: this.#redisUrl };
    return { ...servers, SECRETS_KEYS: testSecretsKeys, SIGNUP: "closed" };
  }

  /** Creates a key of a new account. */
  async createKey(account: string, tier = "enterprise"): Promise<string> {
    return this.admin("create-key", "--account", account, "--tier", tier);
  }

  /** Runs an operator command and returns its output. */
  async admin(...args: readonly string[]): Promise<string> {
    return admin({ DATABASE_URL: this.databaseUrl, REDIS_URL: this.#redisUrl }, ...args);
  }

  /** Starts a worker without browsers that calls one of the control processes. */
  async fakeWorker(control = 0, options: Partial<FakeWorkerOptions> = {}): Promise<FakeWorker> {
    const worker = new FakeWorker({ control: this.control(control).fleetAddress, token, ...options });
    await worker.start();
    this.fakeWorkers.push(worker);
    return worker;
  }

  /** Stops gateways and workers in order. */
  async stopProcesses(): Promise<void> {
    for (const worker of this.fakeWorkers) worker.die();
    await Promise.all(this.workers.map((worker) => worker.stop()));
    await Promise.all([...this.gateways, ...this.controls].map((each) => each.stop()));
  }

  /** Kills all processes with SIGKILL, also browsers, as the loss of the machine does. */
  async kill(): Promise<void> {
    const all = [...this.workers, ...this.gateways, ...this.controls];
    const descendants = all.flatMap(({ pid }) => (pid === undefined ? [] : descendantsOf(pid)));
    await Promise.all([...all, this.redis].map((each) => each.kill()));
    for (const each of descendants) if (isStillThere(each)) process.kill(each.pid, "SIGKILL");
  }

  /** Ends all processes in any state and deletes the data. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopProcesses();
    await this.redis[Symbol.asyncDispose]();
    await this.postgres.stop();
    await rm(this.dataDir, { recursive: true, force: true });
  }

  async #startProcesses(options: DeploymentOptions): Promise<void> {
    const { gateways = [{}, {}], controls = 1, workers = 2, slots = 2, roots = {}, ...env } = options;
    for (let index = 0; index < controls; index += 1)
      this.controls.push(await this.#makeControl(env.gatewayEnv, roots.control));
    for (const own of gateways) {
      const ports = await freePorts("PORT", "GRPC_PORT", "INTERNAL_PORT");
      this.gateways.push(this.#makeGateway(ports, { ...env.gatewayEnv, ...own }, roots.gateway));
    }
    for (let index = 0; index < workers; index += 1)
      await this.addWorker({ WORKER_SLOTS: String(slots), ...env.workerEnv }, roots.worker);
    const starts = [...this.controls, ...this.gateways, ...this.workers].map((each) => each.start());
    const [key] = await Promise.all([this.createKey("deployment"), ...starts]);
    this.key = key;
  }

  async #makeControl(env: Record<string, string> = {}, root?: string): Promise<DeployedControl> {
    const ports = await freePorts("INTERNAL_PORT", "FLEET_PORT");
    const { DATABASE_URL, REDIS_URL } = this.sharedEnv;
    const control = new DeployedProcess({
      root,
      program: "gateway/main.ts",
      env: {
        DATABASE_URL: DATABASE_URL ?? "",
        REDIS_URL: REDIS_URL ?? "",
        WORKER_TOKEN: token,
        ...env,
        ROLE: "control",
        HOST: "127.0.0.1",
        DATA_DIR: join(this.dataDir, "control"),
        INTERNAL_PORT: String(ports.INTERNAL_PORT),
        FLEET_PORT: String(ports.FLEET_PORT),
      },
      internalPort: ports.INTERNAL_PORT,
    });
    const internalUrl = `http://127.0.0.1:${ports.INTERNAL_PORT}`;
    return Object.assign(control, { internalUrl, fleetAddress: `127.0.0.1:${ports.FLEET_PORT}` });
  }

  #makeGateway(
    ports: Record<"PORT" | "GRPC_PORT" | "INTERNAL_PORT", number>,
    env: Record<string, string>,
    root?: string,
  ) {
    const url = `http://127.0.0.1:${ports.PORT}`;
    const variables = Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)]));
    const gateway = new DeployedProcess({
      root,
      program: "gateway/main.ts",
      env: { ...this.sharedEnv, HOST: "127.0.0.1", ...variables, DATA_DIR: join(this.dataDir, "gateways"), ...env },
      internalPort: ports.INTERNAL_PORT,
    });
    const rest: Rest = (path, body, init) => restClient({ url, key: this.key })(path, body, init);
    const internalUrl = `http://127.0.0.1:${ports.INTERNAL_PORT}`;
    return Object.assign(gateway, { url, grpcAddress: `127.0.0.1:${ports.GRPC_PORT}`, internalUrl, rest });
  }

  /** Adds a worker without starting it. */
  async addWorker(env: Record<string, string>, root?: string): Promise<DeployedWorker> {
    const index = this.workers.length;
    const ports = await freePorts("LISTEN", "INTERNAL_PORT");
    const addresses = this.controls.map(({ fleetAddress }) => fleetAddress);
    // Each worker starts with another control process, which distributes them.
    const turn = index % addresses.length;
    const worker = new DeployedProcess({
      root,
      program: "workers/main.ts",
      env: {
        DATA_DIR: join(this.dataDir, `worker-${index}`),
        WORKER_INDEX: String(index),
        CONTROL: [...addresses.slice(turn), ...addresses.slice(0, turn)].join(),
        WORKER_LISTEN: `127.0.0.1:${ports.LISTEN}`,
        WORKER_TOKEN: token,
        INTERNAL_PORT: String(ports.INTERNAL_PORT),
        // The deployment must not wait for sessions that a test leaves behind.
        DRAIN_SECONDS: "0",
        ...env,
      },
      internalPort: ports.INTERNAL_PORT,
    });
    const added = Object.assign(worker, { internalUrl: `http://127.0.0.1:${ports.INTERNAL_PORT}` });
    this.workers.push(added);
    return added;
  }
}

/** The PostgreSQL of the npm packages, as a separate server with a URL. */
class PostgresServer {
  readonly url: string;
  readonly #directory: string;
  #server: EmbeddedPostgres;

  constructor(directory: string) {
    this.#directory = directory;
    const sockets = encodeURIComponent(join(directory, "postgres", "run"));
    this.url = `postgres://localhost/postgres?user=postgres&host=${sockets}`;
    this.#server = createEmbeddedPostgres(directory, silentLog, forgetful);
  }

  /** Starts the server, also after it was killed. */
  async start(): Promise<void> {
    this.#server = createEmbeddedPostgres(this.#directory, silentLog, forgetful);
    await this.#server.start();
  }

  /** Pid of the postmaster. */
  get pid(): number {
    return Number.parseInt(readFileSync(join(this.#directory, "postgres/data/postmaster.pid"), "utf8"), 10);
  }

  /** Kills the server with SIGKILL. It is not restarted automatically. */
  async kill(): Promise<void> {
    const { pid } = this;
    this.#server.leave();
    await endProcess(pid, [{ signal: "SIGKILL", timeoutMs: 10_000 }]);
  }

  /** Shuts the server down cleanly. */
  async stop(): Promise<void> {
    await this.#server.stop();
  }
}
