import { spawn } from "node:child_process";
import { chmod, chown, mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { sleep, waitUntil } from "../bounded-wait.ts";
import type { Log } from "../log.ts";
import type { EndingStep } from "../process-control.ts";
import { StartRefused } from "../start-refused.ts";
import { createSupervisor, type SupervisedProgram } from "../supervisor.ts";
import { connectionOptions, type DatabaseTarget } from "./database-target.ts";
import { assertReachable, postgresMajor, readyPostgresBinaries, type ServerUser } from "./postgres-binaries.ts";

/** Milliseconds. */
const times = {
  initdb: 60_000,
  /** Includes crash recovery: 1.8 to 3.9 s were measured after a kill during writes. */
  start: 60_000,
  /** After a kill of the postmaster, its backends hold the directory for 0.5 to 4 s. */
  lingering: 20_000,
  fastShutdown: 10_000,
  immediateShutdown: 5_000,
};

/** Log messages if processes of a killed server still hold the directory. */
const stillHeld = /lock file "postmaster\.pid" already exists|pre-existing shared memory block/;

/** Returns the connection target of the server in a data directory. */
export const embeddedTarget = (dataDir: string) => ({
  socketDirectory: join(dataDir, "postgres", "run"),
  user: "postgres",
});

/** Embedded PostgreSQL server on a unix socket. */
export interface EmbeddedPostgres {
  readonly target: DatabaseTarget;
  /** Creates the cluster if necessary. Starts the server, or adopts one that is still running. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Stops supervising the server and leaves it running for another gateway. */
  leave(): void;
}

/** Returns the server's user: for root `nobody`, which initdb finds in every passwd file, else the current user. */
function serverUser(): ServerUser {
  return process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
}

const endingSteps: readonly EndingStep[] = [
  { signal: "SIGINT", timeoutMs: times.fastShutdown },
  { signal: "SIGQUIT", timeoutMs: times.immediateShutdown },
  { signal: "SIGKILL", timeoutMs: times.immediateShutdown },
];

/** PostgreSQL server of a data directory, as a supervised program. */
class Server implements SupervisedProgram {
  readonly name = "PostgreSQL";
  readonly endingSteps = endingSteps;
  readonly logFile: string;
  readonly target: ReturnType<typeof embeddedTarget>;
  readonly #home: string;
  readonly #data: string;
  readonly #sockets: string;
  readonly #user = serverUser();
  readonly #extraSettings: Readonly<Record<string, string>>;

  constructor(dataDir: string, extraSettings: Readonly<Record<string, string>>) {
    this.target = embeddedTarget(dataDir);
    this.#extraSettings = extraSettings;
    this.#home = join(dataDir, "postgres");
    this.#data = join(this.#home, "data");
    this.#sockets = this.target.socketDirectory;
    this.logFile = join(this.#home, "postgres.log");
  }

  async #makeDirectories(): Promise<void> {
    await mkdir(this.#home, { recursive: true });
    await chmod(this.#home, 0o711);
    await assertReachable(this.#home, this.#user);
    await mkdir(this.#sockets, { recursive: true });
    await this.#own(this.#sockets);
    await chmod(this.#sockets, 0o700);
  }

  async #own(path: string): Promise<void> {
    if (this.#user.uid !== undefined) await chown(path, this.#user.uid, this.#user.gid ?? this.#user.uid);
  }

  /** Returns the pid of a server that responds on the socket, or undefined. */
  async findSurvivor(): Promise<number | undefined> {
    await this.#makeDirectories();
    return (await this.#answers()) ? await this.#readPid() : undefined;
  }

  async #answers(): Promise<boolean> {
    const client = new pg.Client({ ...connectionOptions(this.target), query_timeout: 2_000 });
    client.on("error", () => undefined);
    try {
      await client.connect();
      await client.query("select 1");
      return true;
    } catch {
      return false;
    } finally {
      await client.end().catch(() => undefined);
    }
  }

  async #readPid(): Promise<number> {
    const [first] = (await readFile(join(this.#data, "postmaster.pid"), "utf8")).split("\n");
    return Number(first);
  }

  async launch(): Promise<number> {
    const binaries = await readyPostgresBinaries(this.#home, this.#user);
    const major = await readFile(join(this.#data, "PG_VERSION"), "utf8").catch(() => undefined);
    if (major === undefined) await this.#initialise(binaries);
    else if (Number(major) !== postgresMajor) {
      throw new StartRefused(
        `${this.#data} was created by PostgreSQL ${major.trim()}, but this release includes ${postgresMajor}: ` +
          "with the previous release, copy it by `npm run admin -- copy-database`, then set DATABASE_URL",
      );
    }
    const deadline = performance.now() + times.lingering;
    for (;;) {
      const pid = await this.#run(binaries);
      if (pid !== undefined) return pid;
      if (performance.now() > deadline)
        throw new StartRefused(`another PostgreSQL uses ${this.#data}: see ${this.logFile}`);
      await sleep(200);
    }
  }

  /** Initialises the cluster in a temporary directory, so that an interrupted initdb leaves no partial cluster. */
  async #initialise(binaries: string): Promise<void> {
    const unfinished = `${this.#data}.new`;
    await rm(unfinished, { recursive: true, force: true });
    await mkdir(unfinished, { mode: 0o700 });
    await this.#own(unfinished);
    const options = [
      "-A",
      "trust",
      "-U",
      "postgres",
      "--locale=C",
      "-E",
      "UTF8",
      "--data-checksums",
      "--no-instructions",
    ];
    const child = spawn(join(binaries, "initdb"), ["-D", unfinished, ...options], {
      ...this.#user,
      cwd: this.#home,
      stdio: ["ignore", "ignore", "pipe"],
      timeout: times.initdb,
    });
    const output: Buffer[] = [];
    child.stderr.on("data", (chunk: Buffer) => output.push(chunk));
    const code = await new Promise<number | null>((resolve, reject) => child.on("error", reject).on("close", resolve));
    if (code !== 0) throw new StartRefused(`initdb failed: ${Buffer.concat(output).toString().trim()}`);
    await rename(unfinished, this.#data);
  }

  /** Starts the server. Returns undefined if processes of a previous server still hold the directory. */
  async #run(binaries: string): Promise<number | undefined> {
    const log = await open(this.logFile, "w", 0o600);
    const child = spawn(join(binaries, "postgres"), ["-D", this.#data, ...this.#settings()], {
      ...this.#user,
      cwd: this.#home,
      // Uses a separate process group, so that Ctrl-C reaches only the gateway, which then stops the server.
      detached: true,
      stdio: ["ignore", log.fd, log.fd],
    });
    let ended = false;
    child.once("exit", () => {
      ended = true;
    });
    child.once("error", () => {
      ended = true;
    });
    child.unref();
    await log.close();
    const { pid } = child;
    if (pid === undefined) throw new Error(`failed to start ${join(binaries, "postgres")}`);
    const ready = await waitUntil(async () => ended || (await this.#answers()), {
      timeout: times.start,
      every: 10,
    });
    if (ready && !ended) return pid;
    const output = await readFile(this.logFile, "utf8");
    if (ended && stillHeld.test(output)) return undefined;
    child.kill("SIGQUIT");
    throw new StartRefused(`PostgreSQL did not start: ${output.trim().split("\n").slice(-5).join("\n")}`);
  }

  #settings(): string[] {
    const settings = {
      listen_addresses: "",
      unix_socket_directories: this.#sockets,
      unix_socket_permissions: "0700",
      shared_buffers: "64MB",
      max_connections: "100",
      // Keeps shared memory in the data directory: sessions may fill /dev/shm, and a killed server leaves its segments
      // there.
      dynamic_shared_memory_type: "mmap",
      ...this.#extraSettings,
    };
    return Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  }
}

/** Creates the server of a data directory with additional settings, without starting it. */
export function createEmbeddedPostgres(
  dataDir: string,
  log: Log,
  settings: Readonly<Record<string, string>> = {},
): EmbeddedPostgres {
  const server = new Server(dataDir, settings);
  const { start, stop, leave } = createSupervisor(server, log);
  return { target: server.target, start, stop, leave };
}
