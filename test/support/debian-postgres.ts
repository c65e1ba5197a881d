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

/** The server refuses to run as root. */
const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/** Creates a cluster and starts its server on a unix socket only. */
export async function startDebianPostgres(): Promise<DebianPostgres> {
  const programs = await findPrograms();
  const home = await mkdtemp(join(tmpdir(), "pilothouse-debian-"));
  await chmod(home, 0o711);
  if (user.uid !== undefined) await chown(home, user.uid, user.gid);
  const data = join(home, "data");
  const spawned = { ...user, cwd: home };
  await run(
    join(programs, "initdb"),
    ["-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync"],
    spawned,
  );
  const settings = ["-c", "listen_addresses=", "-c", `unix_socket_directories=${home}`, "-c", "fsync=off"];
  const server = spawn(join(programs, "postgres"), ["-D", data, ...settings], { ...spawned, stdio: "ignore" });
  const client = async (program: string, ...args: readonly string[]) => {
    const options = { ...spawned, maxBuffer: 64 * 1_024 * 1_024 };
    return (await run(join(programs, program), ["-h", home, "-U", "postgres", ...args], options)).stdout;
  };
  const answers = () =>
    client("pg_isready").then(
      () => true,
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
