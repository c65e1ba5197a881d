import { once } from "node:events";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { TLSSocket } from "node:tls";
import { sleep, waitUntil } from "../../src/platform/bounded-wait.ts";
import type { Case, Step } from "./bytes.ts";
import type { EntryPoint } from "./world.ts";

/** Milliseconds to wait for a response before the next step. */
const answerMs = 1_000;

/** Sends a case to a port and returns the response. A response ends after `timeoutMs` without a byte. */
export async function send(entryPoint: EntryPoint, { steps, leave }: Case, timeoutMs: number): Promise<Buffer> {
  const socket = entryPoint.open();
  const received: Buffer[] = [];
  let changedAt = performance.now();
  let isOver = false;
  socket.on("error", () => undefined);
  socket.once("close", () => {
    isOver = true;
  });
  socket.on("data", (bytes: Buffer) => {
    received.push(bytes);
    changedAt = performance.now();
  });
  for (const step of segmentsOf(steps)) {
    if (isOver) break;
    if (step === "answer") await waitUntil(() => isOver || received.length > 0, { timeout: answerMs, every: 1 });
    else if (step === 0) await setImmediate();
    else if (typeof step === "number") await sleep(step);
    else await written(socket, step);
  }
  changedAt = performance.now();
  if (leave === "end") socket.end();
  if (leave !== "reset") {
    const isQuiet = () => isOver || performance.now() - changedAt > timeoutMs;
    await waitUntil(isQuiet, { timeout: 20 * timeoutMs, every: 2 });
  }
  // Neither TLS nor a Unix socket can be reset.
  if (
    leave === "reset" &&
    socket instanceof Socket &&
    !(socket instanceof TLSSocket) &&
    socket.remotePort !== undefined
  )
    socket.resetAndDestroy();
  socket.destroy();
  if (!isOver) await once(socket, "close");
  return Buffer.concat(received);
}

/** Joins consecutive bytes without a pause, so that they form one segment if they fit. */
function segmentsOf(steps: readonly Step[]): Step[] {
  const joined: Step[] = [];
  for (const step of steps) {
    const last = joined.at(-1);
    if (Buffer.isBuffer(step) && Buffer.isBuffer(last)) joined[joined.length - 1] = Buffer.concat([last, step]);
    else joined.push(step);
  }
  return joined;
}

/** Resolves when the bytes were passed to the kernel or the connection is closed. */
function written(socket: Duplex, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      socket.off("close", done);
      resolve();
    };
    socket.once("close", done);
    socket.write(bytes, done);
  });
}
