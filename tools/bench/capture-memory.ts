import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { type Service, startService } from "../../test/support/service.ts";
import { type Bench, boundVerdict, type Row } from "./bench.ts";
import { Client } from "./client.ts";
import { pssBytes } from "./processes.ts";
import { median, timed } from "./samples.ts";
import { startSite } from "./site.ts";

const mebibyte = 1024 * 1024;
const barMib = 16;

/** With markup, the snapshot is just below the capture limit of 64 MiB. */
const textBytes = 63.9 * mebibyte;

/** Idle timeout of the session, in seconds. The session ends long before the slow reader has finished. */
const idleSeconds = 10;
const slowBytesPerSecond = mebibyte;

/** Interval of the slow reader, in milliseconds. */
const stepMs = 50;

/** Milliseconds for a gateway to free the memory of a fast reader. */
const settleMs = 1_000;

/** Results of one slow reader. */
interface SlowRead {
  readonly raisedMib: number;
  readonly bytes: number;
  readonly seconds: number;
  /** The same capture at full speed. */
  readonly quickSeconds: number;
  readonly sessionEnded: boolean;
}

/** Memory that a slow reader of a large capture costs a gateway. */
export const captureMemory: Bench = {
  name: "capture-memory",
  title:
    "a DOM snapshot of about 64 MiB read at 1 MiB/s: what it adds to the gateway's PSS after one read at full speed",
  async run(scale): Promise<Row[]> {
    await using site = await startSite();
    const service = await startService({ EGRESS_ALLOW: site.host });
    try {
      using client = new Client(service);
      const reads: SlowRead[] = [];
      for (let left = scale.of(3, 1); left > 0; left -= 1) {
        reads.push(await readSlowly(client, service, site.textUrl(textBytes)));
      }
      return [...reads.map(toRow), total(reads)];
    } finally {
      await service.stop();
    }
  },
};

async function readSlowly(client: Client, service: Service, url: string): Promise<SlowRead> {
  const gateway = service.pidOf("gateway");
  const quick = await beginCapture(client, url, {});
  const quickSeconds = await secondsOf(() => drain(quick.response, Number.POSITIVE_INFINITY));
  await client.destroy(quick.session);
  await delay(settleMs);
  const before = pssBytes(gateway);
  let highest = before;
  const { session, response } = await beginCapture(client, url, { idle_timeout_seconds: idleSeconds });
  const watch = setInterval(() => {
    highest = Math.max(highest, pssBytes(gateway));
  }, 1_000);
  const seconds = await secondsOf(() => drain(response, slowBytesPerSecond)).finally(() => clearInterval(watch));
  const sessionEnded = await client.open("GET", session).then(
    () => false,
    (error: unknown) => String(error).includes("session-destroyed"),
  );
  const bytes = Number(response.headers["content-length"]);
  return { raisedMib: (highest - before) / mebibyte, bytes, seconds, quickSeconds, sessionEnded };
}

async function beginCapture(client: Client, url: string, options: object) {
  const session = await client.create(options);
  await client.post(`${session}/navigate`, { url });
  const response = await client.open("POST", `${session}/capture`, { kind: "dom_snapshot" });
  return { session, response };
}

async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  return (await timed(work)()) / 1_000;
}

/** Reads a body at a limited rate. Throws if bytes are missing. */
async function drain(response: IncomingMessage, bytesPerSecond: number): Promise<void> {
  const ended = once(response, "end");
  const beganAt = performance.now();
  let bytes = 0;
  let last = "";
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    last = chunk.toString("latin1").slice(-2);
    const early = (bytes / bytesPerSecond) * 1_000 - (performance.now() - beganAt);
    if (early < stepMs) return;
    response.pause();
    setTimeout(() => response.resume(), early);
  });
  await ended;
  if (bytes !== Number(response.headers["content-length"]) || last !== '"}') {
    throw new Error(`the capture broke off after ${bytes} of ${response.headers["content-length"]} bytes`);
  }
}

function toRow({ raisedMib, bytes, seconds, quickSeconds, sessionEnded }: SlowRead, index: number): Row {
  return {
    what: `read ${index + 1}`,
    ours: `+${raisedMib.toFixed(1)} MiB`,
    bare: "",
    verdict:
      `all ${bytes} bytes of JSON in ${seconds.toFixed(0)} s, at full speed ${quickSeconds.toFixed(1)} s; ` +
      `the session ${sessionEnded ? "ended meanwhile" : "did not end"}`,
  };
}

function total(reads: readonly SlowRead[]): Row {
  const raised = median(reads.map(({ raisedMib }) => raisedMib));
  return { what: "median", ours: `+${raised.toFixed(1)} MiB`, bare: "", verdict: boundVerdict(raised, barMib, "MiB") };
}
