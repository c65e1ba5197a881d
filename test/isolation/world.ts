import { spawn } from "node:child_process";
import { tmpdir } from "node:os";
import { type BrowserPaths, findBrowsers, realDisk } from "../../src/platform/browsers/browser-paths.ts";
import type { Log } from "../../workers/base/log.ts";

/** Browsers of this machine, found as a worker finds them. */
export const executables: BrowserPaths = findBrowsers({
  env: process.env,
  dataDirectory: tmpdir(),
  platform: process.platform,
  disk: realDisk,
});

/** Both runtimes, for which the same must hold. */
export const runtimes = ["headless-shell", "chromium"] as const;

/** Whether this test runs as root. The isolation must hold in both cases. */
export const isRoot = process.getuid?.() === 0;

/** Prefix that runs a command in a user namespace without the right to create further namespaces. */
export const withoutNamespaces: readonly string[] = [
  "unshare",
  "--user",
  "--map-current-user",
  ...(isRoot ? [] : ["--keep-caps"]),
  "sh",
  "-c",
  'echo 0 > /proc/sys/user/max_net_namespaces; echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"',
  "sh",
];

/** Prefix that runs a command of root without a capability, such as `sys_admin`. */
export const withoutCapability = (name: string): readonly string[] => [
  "setpriv",
  `--bounding-set=-${name}`,
  `--inh-caps=-${name}`,
];

/** Log that records its messages. */
export function keepingLog(): Log & { readonly complaints: string[] } {
  const complaints: string[] = [];
  const keep = (_object: object, message: string) => void complaints.push(message);
  return { complaints, debug: () => undefined, info: () => undefined, warn: keep, error: keep };
}

/**
 * Isolated network with loopback and a link to the machine itself, because a browser uses channels only on interfaces
 * other than loopback. Its addresses represent a private network and a cloud's metadata service.
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

/** Addresses of this network that no page may reach. */
export const forbiddenAddresses = ["127.0.0.1", "10.77.0.1", "169.254.169.254"] as const;

/** Runs a script of this folder in such a network as the current user, and parses the JSON that it prints. */
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
