import type { BrowserRuntime } from "../../src/platform/browsers/browser-paths.ts";
import { startService } from "../../test/support/service.ts";
import { type Bench, boundVerdict, type Row, type Scale } from "./bench.ts";
import { Client } from "./client.ts";
import { median, spread, timed } from "./samples.ts";
import { startSite } from "./site.ts";

/** Milliseconds of an action with the following snapshot on a still page, and of a snapshot of a large page. */
const bars = { step: 60, snapshot: 300 };

const maxSnapshotBytes = 24_576;

const tableRows = 4_000;

/** Time that an agent waits besides the time of its model. */
export const observe: Bench = {
  name: "observe",
  title: `an action with its settling and a snapshot, on a still page; snapshots of a page with a table of ${tableRows} rows`,
  async run(scale): Promise<Row[]> {
    await using site = await startSite();
    const service = await startService({ EGRESS_ALLOW: site.host });
    try {
      using client = new Client(service);
      const rows: Row[] = [];
      for (const runtime of ["headless-shell", "chromium"] as const) {
        const session = await client.create({ runtime });
        await client.post(`${session}/navigate`, { url: site.formUrl });
        rows.push(await measureSteps(client, session, runtime, scale));
        await client.post(`${session}/navigate`, { url: site.tableUrl(tableRows) });
        for (const snapshot of snapshots)
          rows.push(await measureSnapshots(client, session, { ...snapshot, runtime }, scale));
        await client.destroy(session);
      }
      return rows;
    } finally {
      await service.stop();
    }
  },
};

/** Taps an inert element, so that the snapshot waits for one frame only. */
async function measureSteps(client: Client, session: string, runtime: string, scale: Scale): Promise<Row> {
  const step = { action: { kind: "tap", selector: "h1" }, observe: {} };
  const times = await sample(() => client.post(`${session}/interact`, step), scale);
  const verdict = boundVerdict(median(times), bars.step, "ms");
  return { what: `${runtime} tap, settle, snapshot`, ours: spread(times), bare: "-", verdict };
}

const snapshots = [
  { name: "of the viewport", request: { scope: "viewport" } },
  { name: "of the whole page", request: { scope: "page" } },
  { name: "with find of the last row", request: { find: `Item ${tableRows - 1}` } },
];

async function measureSnapshots(
  client: Client,
  session: string,
  { name, request, runtime }: { readonly name: string; readonly request: object; readonly runtime: BrowserRuntime },
  scale: Scale,
): Promise<Row> {
  let bytes = 0;
  let empty = 0;
  const snapshot = async () => {
    const answer = await client.post<{ snapshot: string }>(`${session}/observe`, request);
    bytes = Buffer.byteLength(answer.snapshot);
    if (bytes === 0) empty += 1;
  };
  const times = await sample(snapshot, scale);
  const bounds = `${boundVerdict(median(times), bars.snapshot, "ms")}; ${boundVerdict(bytes, maxSnapshotBytes, "bytes")}`;
  const verdict = empty === 0 ? bounds : `${bounds}; ${empty} were empty`;
  return { what: `${runtime} snapshot ${name}`, ours: spread(times), bare: "-", verdict };
}

async function sample(work: () => Promise<unknown>, scale: Scale): Promise<number[]> {
  const measure = timed(work);
  for (let warmUp = 0; warmUp < 5; warmUp += 1) await measure();
  const times: number[] = [];
  for (let round = scale.of(60, 15); round > 0; round -= 1) times.push(await measure());
  return times;
}
