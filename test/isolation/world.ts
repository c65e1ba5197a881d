import { spawn } from "node:child_process";
import { tmpdir } from "node:os";
import { type BrowserPaths, findBrowsers, realDisk } from "../../src/platform/browsers/browser-paths.ts";
import type { Log } from "../../workers/base/log.ts";

/** The browsers of this machine, as a worker would find them. */
export const executables: BrowserPaths = findBrowsers({
  env: process.env,
  dataDirectory: tmpdir(),
  platform: process.platform,
  disk: realDisk,
});

/** Both runtimes: what holds for one must hold for the other. */
export const runtimes = ["headless-shell", "chromium"] as const;

/** Whether this test runs as root; what is built must do the same for both. */
export const isRoot = process.getuid?.() === 0;

/** Begins a command that runs in a user namespace in which no further namespaces can be made. */
export const withoutNamespaces: readonly string[] = [
  ...["unshare", "--user", "--map-current-user", ...(isRoot ? [] : ["--keep-caps"]), "sh", "-c"],
  'echo 0 > /proc/sys/user/max_net_namespaces; echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"',
  "sh",
];

/** Begins a command of root that runs without a capability, such as `sys_admin`. */
export const withoutCapability = (name: string): readonly string[] => [
  ...["setpriv", `--bounding-set=-${name}`, `--inh-caps=-${name}`],
];

/** A log that keeps what it is told. */
export function keepingLog(): Log & { readonly complaints: string[] } {
  const complaints: string[] = [];
  const keep = (_object: object, message: string) => void complaints.push(message);
  return { complaints, debug: () => undefined, info: () => undefined, warn: keep, error: keep };
}

/**
 * A network of one machine, out of reach of every other: loopback, and a wire from the machine to itself, because a
 * browser looks for ways out on interfaces other than loopback only. Its addresses stand for a private network and for
 * the metadata service of a cloud.
 */
const network = `
set -e
ip link set lo up
ip link add wire0 type veth peer name wire1
ip addr add 10.77.0.2/24 dev wire0
ip addr add 10.77.0.1/24 dev wire1
ip addr add 169.254.169.254/32 dev wire1
ip link set wire0 up
ip link set wire1 up
ip route add default via 10.77.0.1 dev wire0
exec setpriv --inh-caps=-all --ambient-caps=-all "$@"
`;

/** The addresses of that network which no page may reach. */
export const forbiddenAddresses = ["127.0.0.1", "10.77.0.1", "169.254.169.254"] as const;

/** Runs a script of this folder inside such a network, as the user that we are, and gives the JSON that it prints. */
export async function runInOwnNetwork(script: URL, parameters: readonly string[], timeoutMs: number): Promise<unknown> {
  const own = isRoot ? [] : ["--user", "--map-current-user", "--keep-caps"];
  const node = [process.execPath, "--no-warnings", script.pathname, ...parameters];
  const child = spawn("unshare", [...own, "--net", "sh", "-c", network, "sh", ...node], {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: timeoutMs,
    killSignal: "SIGKILL",
  });
  const output: string[] = [];
  const complaints: string[] = [];
  child.stdout.setEncoding("utf8").on("data", (text: string) => void output.push(text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => void complaints.push(text));
  const code = await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (code !== 0) throw new Error(`${script.pathname} ended with ${code}: ${complaints.join("")}`);
  return JSON.parse(output.join(""));
}
