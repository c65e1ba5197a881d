import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, fstatSync, openSync } from "node:fs";
import { Server } from "node:net";

/** Timeout in milliseconds for creating a namespace, which takes 35 to 75 ms on a quiet machine. */
const createMs = 15_000;

/** PATH of system commands, independent of the worker's environment. */
export const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Port of the relay inside a slot's namespace. */
export const relayPort = 3128;

/**
 * Script that runs inside the new namespace: listens, sends the socket to the worker, and exits when the worker
 * disconnects. Node emits no "disconnect" if the worker dies before it has received the socket (observed with Node 24),
 * so the parent pid is polled too.
 */
const listen = `
const parent = process.ppid;
const server = require("node:net").createServer();
server.listen(${relayPort}, "127.0.0.1", () => process.send("listener", server));
process.on("disconnect", () => process.exit());
setInterval(() => process.connected && process.ppid === parent || process.exit(), 100);
`;

/**
 * A network namespace with only loopback and one listening socket, which the worker holds. No helper process is needed:
 * the worker's descriptors and the browsers inside keep the namespace alive. After a crash of the worker, the namespace
 * ends with the last browser inside.
 */
export interface Namespace {
  /** Inode that identifies the network namespace in /proc. */
  readonly inode: number;
  /** Command that enters the namespace. Append the program and its arguments. */
  readonly enter: readonly string[];
  /** Socket that listens inside the namespace and accepts connections in the worker. */
  readonly listener: Server;
  /** Closes the socket and releases the namespace. */
  close(): void;
}

/**
 * Creates a namespace as root, or as an ordinary user inside a new user namespace. Rejects if the kernel refuses, or
 * after 15 s.
 */
export async function createNamespace(isRoot: boolean): Promise<Namespace> {
  const own = isRoot ? [] : ["--user", "--map-current-user", "--keep-caps"];
  const script = 'ip link set lo up && exec "$0" --eval "$1"';
  const child = spawn("unshare", [...own, "--net", "sh", "-c", script, process.execPath, listen], {
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    env: { PATH: systemPath },
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), createMs);
  const descriptors: number[] = [];
  try {
    const listener = await receiveListener(child);
    for (const kind of isRoot ? ["net"] : ["net", "user"])
      descriptors.push(openSync(`/proc/${child.pid}/ns/${kind}`, "r"));
    const ended = once(child, "exit");
    child.disconnect();
    await ended;
    return holdNamespace(descriptors, listener);
  } catch (error) {
    child.kill("SIGKILL");
    for (const descriptor of descriptors) closeSync(descriptor);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

function holdNamespace([net = -1, user]: readonly number[], listener: Server): Namespace {
  const path = (descriptor: number) => `/proc/${process.pid}/fd/${descriptor}`;
  const asUser = user === undefined ? [] : [`--user=${path(user)}`, "--preserve-credentials"];
  return {
    inode: fstatSync(net).ino,
    enter: ["nsenter", ...asUser, `--net=${path(net)}`],
    listener,
    close: () => {
      listener.close();
      closeSync(net);
      if (user !== undefined) closeSync(user);
    },
  };
}

function receiveListener(child: ChildProcess): Promise<Server> {
  return new Promise((resolve, reject) => {
    let errorOutput = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      errorOutput = (errorOutput + text).slice(0, 2_000);
    });
    child.once("message", (_message, handle) => {
      if (handle instanceof Server) resolve(handle);
      else reject(new Error("expected a socket from the new network namespace, got none"));
    });
    child.once("error", reject);
    child.once("close", () =>
      reject(
        new Error(errorOutput.trim() || "the process of the new network namespace exited without an error message"),
      ),
    );
  });
}
