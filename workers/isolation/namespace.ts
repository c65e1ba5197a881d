import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, fstatSync, openSync } from "node:fs";
import { Server } from "node:net";

/** How long a namespace may take to be made; it takes 35 to 75 ms on a quiet machine. */
const createMs = 15_000;

/** Where the system's own commands are, whatever the worker was started with. */
export const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Where the relay of a slot listens inside the slot's namespace. */
export const relayPort = 3128;

/**
 * Runs inside the new namespace: listens, hands the socket over, and ends when the worker has taken hold of the namespace.
 * Node tells of no disconnection when the worker dies before it has taken the socket (seen with 24), so that the parent
 * is looked at as well.
 */
const listen = `
const parent = process.ppid;
const server = require("node:net").createServer();
server.listen(${relayPort}, "127.0.0.1", () => process.send("listener", server));
process.on("disconnect", () => process.exit());
setInterval(() => process.connected && process.ppid === parent || process.exit(), 100);
`;

/**
 * A network namespace with nothing in it but loopback and one listening socket, which the worker holds.
 * No process keeps it alive: it lasts while the worker's descriptors or a browser inside do, so it cannot crash, and it
 * ends with the worker however that ends.
 */
export interface Namespace {
  /** The network namespace's inode, by which the kernel names it in /proc. */
  readonly inode: number;
  /** The command that enters it, to be followed by a program and its arguments. */
  readonly enter: readonly string[];
  /** The socket inside, whose connections are accepted outside. */
  readonly listener: Server;
  /** Lets go of it. */
  close(): void;
}

/** Makes a namespace, as root or as an ordinary user (inside a user namespace of its own); throws where the kernel refuses. */
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
    let complaint = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      complaint = (complaint + text).slice(0, 2_000);
    });
    child.once("message", (_message, handle) => {
      if (handle instanceof Server) resolve(handle);
      else reject(new Error("a new network namespace handed over no socket"));
    });
    child.once("error", reject);
    child.once("close", () => reject(new Error(complaint.trim() || "a new network namespace ended without a reason")));
  });
}
