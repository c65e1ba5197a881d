import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { type CdpScene, startCdpScene } from "../../test/support/cdp-proxy-scene.ts";
import { type Bench, boundVerdict, type Row } from "./bench.ts";
import { Client } from "./client.ts";
import { median, percentile } from "./samples.ts";

/** Milliseconds that the slowest of a hundred taps may take. */
const bar = 50;

const program = fileURLToPath(new URL("bad-client.ts", import.meta.url));

/** Harmful CDP clients next to another session on the same worker. */
export const cdpProxyNeighbours: Bench = {
  name: "cdp-neighbours",
  title:
    "taps by REST of a session with harmful CDP clients of another session, compared with taps without them (p50, p99)",
  async run(scale): Promise<readonly Row[]> {
    await using scene = await startCdpScene();
    using client = new Client(scene.service);
    const session = await client.create();
    await client.post(`${session}/navigate`, { url: scene.site.url("/form.html") });
    const tapAll = (ms: number) => tapFor(client, session, ms);
    await tapAll(2_000);
    const rows: Row[] = [];
    for (const kind of ["floods", "reads nothing", "pauses pages", "sends 90 MiB"]) {
      const alone = await tapAll(scale.of(8_000, 3_000));
      const { taps, times } = await beside(scene, kind, () => tapAll(scale.of(20_000, 6_000)));
      const verdict = boundVerdict(percentile(taps, 0.99), bar, "ms");
      rows.push({ what: `${kind} (${times} times)`, ours: show(taps), bare: show(alone), verdict });
    }
    return rows;
  },
};

/** Taps without pauses. Returns the milliseconds of each. */
async function tapFor(client: Client, session: string, ms: number): Promise<number[]> {
  const taps: number[] = [];
  for (const endsAt = performance.now() + ms; performance.now() < endsAt; ) {
    const beganAt = performance.now();
    await client.post(`${session}/interact`, { action: { kind: "tap", selector: "#check" } });
    taps.push(performance.now() - beganAt);
  }
  return taps;
}

/** Runs a function while a client of another session does harm. Returns the number of harmful actions. */
async function beside(scene: CdpScene, kind: string, run: () => Promise<number[]>) {
  const other = await scene.open();
  const child: ChildProcess = fork(program, [kind, await scene.cdpUrl(other)]);
  const exited = once(child, "exit");
  let times = 0;
  child.on("message", () => {
    times += 1;
  });
  try {
    await Promise.race([once(child, "message"), exited.then(() => Promise.reject(new Error("the client has ended")))]);
    times = 0;
    return { taps: await run(), times };
  } finally {
    child.kill("SIGKILL");
    await exited;
    await scene.rest(other, undefined, { method: "DELETE" });
  }
}

function show(taps: readonly number[]): string {
  return `${median(taps).toFixed(1)}, ${percentile(taps, 0.99).toFixed(1)} ms of ${taps.length}`;
}
