import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { waitUntil } from "../../src/platform/bounded-wait.ts";

const run = promisify(execFile);

/** Debian's PostgreSQL with a new cluster. */
export interface DebianPostgres extends AsyncDisposable {
  readonly url: string;
  /** Directory for files that the server's programs read. */
  readonly directory: string;
  /** Runs a client program (psql, pg_dump) as the server's user with extra options. Returns its output. */
  client(program: string, ...args: readonly string[]): Promise<string>;
}

/** Returns the directory of the newest installed release. */
async function findPrograms(): Promise<string> {
  const releases = await readdir("/usr/lib/postgresql");
  return `/usr/lib/postgresql/${Math.max(...releases.map(Number))}/bin`;
}

/** User of the servers and their programs: PostgreSQL refuses to run as root. */
export const postgresUser = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

export interface DebianPostgresOptions {
  /** Settings of the server, such as `archive_mode=on`. */
  readonly settings?: readonly string[];
  /** Writes the cluster into an empty directory, in place of a new cluster. */
  readonly restore?: (data: string) => Promise<unknown>;
}

/** Starts a server on a unix socket only, by default with a new cluster. */
export async function startDebianPostgres(options: DebianPostgresOptions = {}): Promise<DebianPostgres> {
  const programs = await findPrograms();
  const home = await mkdtemp(join(tmpdir(), "pilothouse-debian-"));
  await chmod(home, 0o711);
  if (postgresUser.uid !== undefined) await chown(home, postgresUser.uid, postgresUser.gid);
  const data = join(home, "data");
  const spawned = { ...postgresUser, cwd: home };
  if (options.restore) await options.restore(data);
  else {
    const created = ["-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync", "--wal-segsize=1"];
    await run(join(programs, "initdb"), created, spawned);
  }
  const all = ["listen_addresses=", `unix_socket_directories=${home}`, "fsync=off", ...(options.settings ?? [])];
  const settings = all.flatMap((setting) => ["-c", setting]);
  const server = spawn(join(programs, "postgres"), ["-D", data, ...settings], { ...spawned, stdio: "ignore" });
  const client = async (program: string, ...args: readonly string[]) => {
    const limits = { ...spawned, maxBuffer: 64 * 1_024 * 1_024 };
    return (await run(join(programs, program), ["-h", home, "-U", "postgres", ...args], limits)).stdout;
  };
  const answers = () =>
    client("psql", "-Atc", "select pg_is_in_recovery()", "postgres").then(
      (isInRecovery) => isInRecovery.trim() === "f",
      () => false,
    );
  if (!(await waitUntil(answers, { timeout: 30_000, every: 50 }))) throw new Error("PostgreSQL did not start");
  return {
    url: `postgres://localhost/postgres?user=postgres&host=${encodeURIComponent(home)}`,
    directory: home,
    client,
    async [Symbol.asyncDispose]() {
      const ended = once(server, "exit");
      server.kill("SIGQUIT");
      await ended;
      await rm(home, { recursive: true, force: true });
    },
  };
}
