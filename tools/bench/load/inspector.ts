import { setTimeout as delay } from "node:timers/promises";
import { WebSocket } from "ws";

/** Default address of Node's inspector, which one process of a machine can use at a time. */
const address = "http://127.0.0.1:9229/json/list";

/** Milliseconds to wait while another process uses the port. */
const timeout = 60_000;

/** Resources of a Node process just after a garbage collection. */
export interface ProcessInternals {
  readonly heapBytes: number;
  /** Buffers outside the heap. */
  readonly bufferBytes: number;
  /** Active resources of the event loop by kind: `Timeout`, `TCPSocketWrap`, ... */
  readonly resources: Readonly<Record<string, number>>;
}

const internalsExpression = `(() => {
  const resources = {};
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1;
  const { heapUsed: heapBytes, arrayBuffers: bufferBytes } = process.memoryUsage();
  return JSON.stringify({ pid: process.pid, heapBytes, bufferBytes, resources });
})()`;

/**
 * Collects the garbage of a Node process that was started without options, and reads its resources. Opens the inspector
 * by SIGUSR1 and closes it again.
 */
export async function readInternals(pid: number): Promise<ProcessInternals> {
  const endsAt = performance.now() + timeout;
  for (;;) {
    process.kill(pid, "SIGUSR1");
    const internals = await inspect(pid).catch(() => undefined);
    if (internals) return internals;
    if (performance.now() > endsAt) throw new Error(`the inspector of process ${pid} cannot be reached`);
    await delay(200);
  }
}

async function inspect(pid: number): Promise<ProcessInternals | undefined> {
  const [target] = (await (await fetch(address, { signal: AbortSignal.timeout(2_000) })).json()) as {
    webSocketDebuggerUrl: string;
  }[];
  const socket = new WebSocket(target?.webSocketDebuggerUrl ?? "");
  try {
    const call = caller(socket);
    const { pid: found } = await evaluate<{ pid: number }>(call, internalsExpression);
    if (found !== pid) return undefined;
    await call("HeapProfiler.enable");
    for (let times = 3; times > 0; times -= 1) await call("HeapProfiler.collectGarbage");
    const internals = await evaluate<ProcessInternals>(call, internalsExpression);
    // Ends the inspector after the response, because it would block the port for the next process.
    await call("Runtime.evaluate", { expression: "setTimeout(() => process._debugEnd(), 50).unref()" });
    return internals;
  } finally {
    socket.terminate();
  }
}

type CallInspector = (method: string, params?: object) => Promise<unknown>;

function caller(socket: WebSocket): CallInspector {
  const opened = new Promise<void>((resolve, reject) => socket.once("open", resolve).once("error", reject));
  const waiting = new Map<number, (result: unknown) => void>();
  socket.on("message", (data) => {
    const { id, result } = JSON.parse(String(data)) as { id: number; result: unknown };
    waiting.get(id)?.(result);
  });
  let last = 0;
  return async (method, params = {}) => {
    await opened;
    last += 1;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    waiting.set(last, resolve);
    const timer = setTimeout(() => reject(new Error(`${method} was not answered`)), 20_000);
    socket.send(JSON.stringify({ id: last, method, params }));
    return promise.finally(() => clearTimeout(timer));
  };
}

async function evaluate<Value>(call: CallInspector, expression: string): Promise<Value> {
  const { result } = (await call("Runtime.evaluate", { expression, returnByValue: true })) as {
    result: { value: string };
  };
  return JSON.parse(result.value) as Value;
}
