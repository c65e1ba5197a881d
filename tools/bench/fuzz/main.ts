// npm run fuzz: sends each kind of message at its size limits to every transport of a service. Prints the event loop
// time per message, and the bytes that unfinished messages keep. Uses the service of DATA_DIR, PORT and GRPC_PORT,
// which must trust X-Forwarded-For of loopback; without DATA_DIR starts its own. The argument is the duration in
// minutes. Times do not affect the exit status.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { bucketNames } from "../../../src/limits/tiers.ts";
import { admin } from "../../../test/support/admin.ts";
import { pidOf } from "../../../test/support/processes.ts";
import { restClient } from "../../../test/support/rest.ts";
import { type Service, startService } from "../../../test/support/service.ts";
import { readInternals } from "../load/inspector.ts";
import { type Cell, cellsOf } from "./cells.ts";
import { held, hold } from "./held.ts";
import { Meter } from "./meter.ts";
import { TransportClients } from "./transport-clients.ts";

/** CPU milliseconds of the event loop that a message may take, by client. */
const bars = { "without a key": 2, "with a key": 20 };
const maxBytes = 64 * 1_024;

/** Number of messages of the first measurement, and of the second measurement for cells near their bar. */
const [few, many] = [20, 200];
const holders = 100;
const shown = 25;

/** Measured properties of a service. */
type Aim = Pick<Service, "url" | "grpcAddress" | "key" | "dataDir" | "pidOf">;

interface Measured {
  readonly cell: Cell;
  readonly ms: number;
  readonly times: number;
  readonly answer: string;
}

/** Measures cells in order until all are measured or the time is over. */
async function measure(meter: Meter, cells: readonly Cell[], until: number): Promise<Measured[]> {
  const measured: Measured[] = [];
  for (const cell of cells) {
    if (performance.now() > until) break;
    const run = async (times: number): Promise<Measured> => {
      let answer = "";
      const ms = await meter.during(async () => (answer = await cell.run(times)));
      return { cell, ms: ms / times, times, answer };
    };
    const first = await run(few);
    measured.push(first.ms > bars[cell.who] / 2 ? await run(many) : first);
    if (measured.length % 500 === 0) process.stderr.write(`${measured.length} of ${cells.length} measured\n`);
  }
  return measured;
}

function print(who: Cell["who"], all: readonly Measured[]): void {
  const bar = bars[who];
  const measured = all.filter(({ cell }) => cell.who === who);
  const over = measured.filter(({ ms }) => ms > bar);
  const rows = measured.toSorted((one, other) => other.ms - one.ms).slice(0, Math.max(shown, over.length));
  process.stdout.write(`\n${who}: ${measured.length} kinds of messages, ${over.length} above ${bar} ms\n`);
  for (const { cell, ms, times, answer } of rows) {
    const what = `${cell.transport}  ${cell.target}  ${cell.shape}`;
    process.stdout.write(
      `${ms.toFixed(2).padStart(8)} ms  ${String(times).padStart(4)}  ${answer.padEnd(20)}  ${what}\n`,
    );
  }
}

async function measureHeld(service: Aim, pid: number): Promise<void> {
  process.stdout.write(
    `\nbytes kept for each of ${holders} connections of a client without a key, at most ${maxBytes}\n`,
  );
  const ports = { PORT: Number(new URL(service.url).port), GRPC_PORT: Number(service.grpcAddress.split(":").at(-1)) };
  const bytesOf = async (): Promise<number> => {
    const { heapBytes, bufferBytes } = await readInternals(pid);
    return heapBytes + bufferBytes;
  };
  for (const each of held) {
    const before = await bytesOf();
    const holding = await hold(each, ports[each.port], holders);
    // The service reads all sent bytes within this time.
    await delay(3_000);
    const bytes = Math.round(((await bytesOf()) - before) / holders);
    const verdict = bytes > maxBytes ? "ABOVE" : "";
    process.stdout.write(`${String(bytes).padStart(8)}  ${each.name} ${verdict}\n`);
    holding.close();
    await delay(500);
  }
}

/** Returns the service of DATA_DIR, or starts one. */
async function findService(): Promise<Aim & AsyncDisposable> {
  const { DATA_DIR: dataDir, PORT = "8080", GRPC_PORT = "8081" } = process.env;
  if (dataDir === undefined) {
    const service = await startService({ TRUSTED_PROXIES: "127.0.0.0/8", WORKER_SLOTS: "2" });
    return { ...service, [Symbol.asyncDispose]: () => service.stop() };
  }
  return {
    dataDir,
    url: `http://127.0.0.1:${PORT}`,
    grpcAddress: `127.0.0.1:${GRPC_PORT}`,
    key: (await readFile(join(dataDir, "dev-api-key"), "utf8")).trim(),
    pidOf: (process) => pidOf(dataDir, process),
    [Symbol.asyncDispose]: async () => undefined,
  };
}

async function main(argument: string | undefined): Promise<void> {
  const minutes = Number(argument ?? Number.POSITIVE_INFINITY);
  if (!(minutes > 0)) throw new Error("the argument is a number of minutes");
  const until = performance.now() + minutes * 60_000;
  await using service = await findService();
  await liftLimits(service);
  const rest = restClient(service);
  const { body: session } = await rest("/v1/sessions", { idle_timeout_seconds: 3_600, timeout_seconds: 3_600 });
  const pid = service.pidOf("gateway");
  const meter = await Meter.start(pid);
  using clients = new TransportClients(service.url);
  const target = { clients, grpcUrl: `http://${service.grpcAddress}`, session: session.id };
  await measureHeld(service, pid);
  do {
    const cells = [...cellsOf({ ...target, key: undefined }), ...cellsOf({ ...target, key: service.key })];
    // In random order, so that a short run covers all kinds.
    const order = cells.map((cell) => ({ cell, place: Math.random() })).sort((one, other) => one.place - other.place);
    const measured = await measure(
      meter,
      order.map(({ cell }) => cell),
      until,
    );
    print("without a key", measured);
    print("with a key", measured);
  } while (argument !== undefined && performance.now() < until);
  if (service.pidOf("gateway") !== pid) throw new Error("the gateway has ended");
  const { body } = await rest(`/v1/sessions/${session.id}`, undefined, { method: "DELETE" });
  if (body.type) throw new Error(`a message has ended the session: ${body.detail}`);
}

/** Lifts rate limits, because an empty bucket would refuse messages before they are read. */
async function liftLimits({ key, url, dataDir }: Aim): Promise<void> {
  const { body } = await restClient({ url, key })("/v1/account/me");
  const max = String(2 ** 31);
  for (const limit of bucketNames) {
    const args = [
      "--account",
      body.account.id,
      "--limit",
      limit,
      "--value",
      max,
      "--refill-per-minute",
      max,
      "--until",
      "1d",
    ];
    await admin({ DATA_DIR: dataDir }, "override", ...args);
  }
  // Overrides take effect within 5 s.
  await delay(6_000);
}

main(process.argv[2]).catch((error: unknown) => {
  process.stderr.write(`fuzz: ${error instanceof Error ? error.stack : String(error)}\n`);
  process.exitCode = 1;
});
