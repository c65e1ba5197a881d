import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import type { FleetTlsFiles } from "../../src/platform/grpc/fleet-certificates.ts";
import { freePorts } from "./free-port.ts";

const run = promisify(execFile);

const waitMs = 60_000;
const name = "pilothouse";
/** Contains characters that a URL encodes. */
const password = "p@ss/of:servers";
const sentinelPassword = "p@ss&of sentinels";

interface Server {
  readonly port: number;
  readonly process: ChildProcess;
}

/** A primary, two replicas and three sentinels of Redis on loopback ports, with TLS and passwords. */
export class RedisSentinels implements AsyncDisposable {
  readonly #tls: FleetTlsFiles;
  readonly #directory: string;
  readonly #servers: Server[] = [];
  readonly #sentinels: Server[] = [];

  private constructor(tls: FleetTlsFiles, directory: string) {
    this.#tls = tls;
    this.#directory = directory;
  }

  /** Starts all servers. Resolves when the sentinels could replace the primary. */
  static async start(tls: FleetTlsFiles): Promise<RedisSentinels> {
    const all = new RedisSentinels(tls, await mkdtemp(join(tmpdir(), "sentinels-")));
    try {
      await all.#startAll();
      return all;
    } catch (error) {
      await all[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Names a sentinel that does not exist before those that do. */
  get url(): string {
    const hosts = [1, ...this.#sentinels.map(({ port }) => port)].map((port) => `127.0.0.1:${port}`);
    const query = new URLSearchParams({ sentinel_password: sentinelPassword });
    return `rediss+sentinel://:${encodeURIComponent(password)}@${hosts.join()}/${name}/0?${query}`;
  }

  /** Port of the primary. */
  async primary(): Promise<number> {
    const address = await this.#ask("GET-MASTER-ADDR-BY-NAME", name);
    return Number(address.split("\n")[1]);
  }

  /** Kills the primary with SIGKILL. */
  async killPrimary(): Promise<void> {
    const port = await this.primary();
    await Promise.all(this.#servers.filter((server) => server.port === port).map(end));
  }

  /** Makes a replica the primary while both run. */
  async promoteReplica(): Promise<void> {
    await this.#until("a replica can become the primary", async () => (await this.#ask("FAILOVER", name)) === "OK\n");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#sentinels, ...this.#servers].map(end));
    await rm(this.#directory, { recursive: true });
  }

  async #startAll(): Promise<void> {
    const { P, Q, R, A, B, C } = await freePorts("P", "Q", "R", "A", "B", "C");
    for (const port of [P, Q, R]) {
      const primary = port === P ? [] : [`replicaof 127.0.0.1 ${P}`];
      await this.#write(port, [`requirepass "${password}"`, `masterauth "${password}"`, 'save ""', ...primary]);
      this.#servers.push({ port, process: await this.#spawn(port, "server") });
    }
    for (const port of [A, B, C]) {
      await this.#write(port, [
        `requirepass "${sentinelPassword}"`,
        `sentinel sentinel-pass "${sentinelPassword}"`,
        `sentinel monitor ${name} 127.0.0.1 ${P} 2`,
        `sentinel auth-pass ${name} "${password}"`,
        `sentinel down-after-milliseconds ${name} 1500`,
        `sentinel failover-timeout ${name} 10000`,
      ]);
      this.#sentinels.push({ port, process: await this.#spawn(port, "sentinel") });
    }
    await this.#until("the sentinels know each other and the replicas", async () => {
      const [quorum, replicas] = await Promise.all([this.#ask("CKQUORUM", name), this.#ask("REPLICAS", name)]);
      return quorum.startsWith("OK 3") && replicas.match(/^master-link-status\nok$/gm)?.length === 2;
    });
  }

  #write(port: number, lines: readonly string[]): Promise<void> {
    const { cert, key, ca } = this.#tls;
    const tls = [`tls-cert-file ${cert}`, `tls-key-file ${key}`, `tls-ca-cert-file ${ca}`, "tls-auth-clients no"];
    const common = ["bind 127.0.0.1", "port 0", `tls-port ${port}`, "tls-replication yes", `dir ${this.#directory}`];
    return writeFile(join(this.#directory, `${port}.conf`), [...common, ...tls, ...lines, ""].join("\n"));
  }

  async #spawn(port: number, kind: "server" | "sentinel"): Promise<ChildProcess> {
    const mode = kind === "sentinel" ? ["--sentinel"] : [];
    const child = spawn("redis-server", [join(this.#directory, `${port}.conf`), ...mode], { stdio: "ignore" });
    await once(child, "spawn");
    return child;
  }

  async #until(what: string, condition: () => Promise<boolean>): Promise<void> {
    const holds = await waitUntil(() => condition().catch(() => false), { timeout: waitMs, every: 100 });
    if (!holds) throw new Error(`waited in vain until ${what}`);
  }

  async #ask(...command: readonly string[]): Promise<string> {
    const port = String(this.#sentinels[0]?.port);
    const tls = ["--tls", "--cacert", this.#tls.ca, "--no-auth-warning", "-a", sentinelPassword];
    const { stdout } = await run("redis-cli", [...tls, "-p", port, "SENTINEL", ...command], { timeout: 5_000 });
    return stdout;
  }
}

async function end({ process: child }: Server): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}
