import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { freePorts } from "./free-port.ts";

/** Credentials of the proxies with a login. */
export const proxyLogin = { username: "ada", password: "p4ss:word é" } as const;

const isRoot = process.getuid?.() === 0;

/** User of proxies that root starts. */
const nobody = { uid: 65_534, gid: 65_534, name: "nobody" };

const startMs = 15_000;

/** Proxy program from Debian on a new loopback port. */
export class RealProxy {
  readonly port: number;
  readonly #command: readonly string[];
  readonly #directory: string;
  #process: ChildProcess | undefined;

  constructor(port: number, directory: string, command: readonly string[]) {
    this.port = port;
    this.#directory = directory;
    this.#command = command;
  }

  /** Starts the proxy, also after it was killed. */
  async start(): Promise<this> {
    const [program = "", ...parameters] = this.#command;
    // Own process group, so that forked processes are killed too. Daemons are in sbin, which an ordinary user's PATH
    // may lack.
    const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` };
    const child = spawn(program, parameters, { env, stdio: "ignore", detached: true });
    this.#process = child;
    const isThere = async () => child.exitCode !== null || (await listens(this.port));
    if (!(await waitUntil(isThere, { timeout: startMs, every: 20 }))) {
      throw new Error(`${program} does not listen:\n${this.log()}`);
    }
    if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}:\n${this.log()}`);
    return this;
  }

  /** Kills the proxy, as if its machine had vanished. */
  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    process.kill(-child.pid, "SIGKILL");
    await ended;
  }

  /** Returns the proxy's log of requests. */
  log(): string {
    return readFileSync(join(this.#directory, "log"), "utf8");
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** Options of a tinyproxy or a squid. */
export interface HttpProxyOptions {
  /** Requires the login. */
  readonly login?: boolean;
  /** Only port for tunnels; any if absent. */
  readonly tunnelsTo?: number;
  /** Uses TLS with this certificate. */
  readonly tls?: Certificate;
  /** Names that the proxy resolves to loopback (squid only). */
  readonly names?: readonly string[];
}

/** Starts a tinyproxy. Its login must consist of plain words. */
export async function startTinyproxy(options: { login?: string; tunnelsTo?: number } = {}): Promise<RealProxy> {
  const { port } = await freePorts("port");
  const directory = makeDirectory();
  const lines = [
    `Port ${port}`,
    "Listen 127.0.0.1",
    "Timeout 60",
    "MaxClients 50",
    "LogLevel Connect",
    `LogFile "${directory}/log"`,
    ...(options.login === undefined ? [] : [`BasicAuth ${options.login.replace(":", " ")}`]),
    ...(options.tunnelsTo === undefined ? [] : [`ConnectPort ${options.tunnelsTo}`]),
  ];
  writeFileSync(join(directory, "conf"), `${lines.join("\n")}\n`);
  return new RealProxy(port, directory, ["tinyproxy", "-d", "-c", join(directory, "conf")]).start();
}

/** Starts a squid, which runs as `nobody` if started by root. */
export async function startSquid({ login, tunnelsTo, tls, names = [] }: HttpProxyOptions = {}): Promise<RealProxy> {
  const { port } = await freePorts("port");
  const directory = makeDirectory();
  const { username, password } = proxyLogin;
  // Password hash of Apache, which squid's helper reads.
  if (login) writeFileSync(join(directory, "users"), `${username}:${hash("-apr1", password)}\n`, { mode: 0o644 });
  const where = `127.0.0.1:${port}`;
  if (names.length > 0) writeFileSync(join(directory, "hosts"), `127.0.0.1 ${names.join(" ")}\n`, { mode: 0o644 });
  const lines = [
    ...(names.length > 0 ? [`hosts_file ${directory}/hosts`] : []),
    tls ? `https_port ${where} tls-cert=${tls.cert} tls-key=${tls.key}` : `http_port ${where}`,
    "pid_filename none",
    "cache deny all",
    `access_log stdio:${directory}/log`,
    `cache_log ${directory}/cache.log`,
    `coredump_dir ${directory}`,
    "pinger_enable off",
    ...(isRoot ? [`cache_effective_user ${nobody.name}`] : []),
    ...(login ? [`auth_param basic program /usr/lib/squid/basic_ncsa_auth ${directory}/users`] : []),
    ...(tunnelsTo === undefined ? [] : [`acl tunnels port ${tunnelsTo}`, "http_access deny CONNECT !tunnels"]),
    ...(login ? ["acl known proxy_auth REQUIRED", "http_access allow known"] : ["http_access allow localhost"]),
    "http_access deny all",
  ];
  writeFileSync(join(directory, "conf"), `${lines.join("\n")}\n`);
  return new RealProxy(port, directory, ["squid", "-N", "-f", join(directory, "conf")]).start();
}

/**
 * Starts a dante. It reads logins from the system's users, so it runs in a mount namespace with our own /etc/passwd and
 * /etc/shadow.
 */
export async function startDante({ login = false } = {}): Promise<RealProxy> {
  const { port } = await freePorts("port");
  const directory = makeDirectory();
  const lines = [
    `logoutput: ${directory}/log`,
    `internal: 127.0.0.1 port = ${port}`,
    "external: lo",
    "clientmethod: none",
    `socksmethod: ${login ? "username" : "none"}`,
    "user.privileged: root",
    `user.unprivileged: ${isRoot ? nobody.name : "root"}`,
    "client pass { from: 127.0.0.0/8 to: 0.0.0.0/0 }",
    "socks pass { from: 127.0.0.0/8 to: 0.0.0.0/0 log: connect error }",
  ];
  writeFileSync(join(directory, "conf"), `${lines.join("\n")}\n`);
  const { username, password } = proxyLogin;
  const known = readFileSync("/etc/passwd", "utf8");
  writeFileSync(join(directory, "passwd"), `${known}${username}:x:65533:65533::/:/usr/sbin/nologin\n`);
  writeFileSync(join(directory, "shadow"), `${username}:${hash("-6", password)}:20000:0:99999:7:::\n`);
  const mounts = ["passwd", "shadow"].map((file) => `mount --bind ${directory}/${file} /etc/${file}`).join(" && ");
  const own = isRoot ? [] : ["--user", "--map-root-user"];
  const script = `${mounts} && exec danted -f ${directory}/conf`;
  return new RealProxy(port, directory, ["unshare", ...own, "--mount", "sh", "-c", script]).start();
}

/** Files of a self-signed certificate for `localhost`. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
  remove(): void;
}

export function makeCertificate(): Certificate {
  const directory = makeDirectory();
  const [cert, key] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
  execFileSync("openssl", ["req", "-x509", ...kind, ...names, "-keyout", key, "-out", cert], { stdio: "ignore" });
  chmodSync(key, 0o644);
  return { cert, key, remove: () => rmSync(directory, { recursive: true, force: true }) };
}

function hash(kind: string, password: string): string {
  return execFileSync("openssl", ["passwd", kind, "-stdin"], { input: `${password}\n`, encoding: "utf8" }).trim();
}

/** Creates a directory with an empty log that the proxies' user can write. */
function makeDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "proxy-"));
  const log = join(directory, "log");
  writeFileSync(log, "");
  chmodSync(directory, 0o755);
  if (isRoot) for (const path of [directory, log]) chownSync(path, nobody.uid, nobody.gid);
  return directory;
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const settle = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("connect", () => settle(true));
    socket.once("error", () => settle(false));
  });
}
