import { setTimeout as delay } from "node:timers/promises";
import { type Service, startService } from "../../test/support/service.ts";
import { type Bench, boundVerdict, type Row } from "./bench.ts";
import { Client } from "./client.ts";
import { ownCpuMs, treeCpuMs } from "./processes.ts";
import { median } from "./samples.ts";
import { serviceSession } from "./session-run.ts";
import { startSite } from "./site.ts";

const barMs = 50;

/** Milliseconds of the idle measurement, whose costs are subtracted. */
const idleMs = 10_000;

/** Sessions per round: several, because /proc counts in ticks of 10 ms. */
const sessions = 10;

/** CPU milliseconds of each part of the service outside the browsers. */
interface PartTimes {
  readonly gateway: number;
  readonly worker: number;
  readonly postgres: number;
}

/** CPU of a session outside its browser. */
export const outsideCpu: Bench = {
  name: "outside-cpu",
  title:
    "CPU of a session (create + navigate + screenshot + destroy) outside the browser: gateway with control process and supervisor, worker with relay, PostgreSQL",
  async run(scale): Promise<Row[]> {
    await using site = await startSite();
    const service = await startService({ EGRESS_ALLOW: site.host });
    try {
      using client = new Client(service);
      const read = partReader(service);
      const run = serviceSession(client, site.formUrl);
      const round = async (): Promise<void> => {
        for (let left = sessions; left > 0; left -= 1) await (await run()).end();
      };
      // The gateway and the worker compile hot code during their first dozens of sessions.
      for (let left = scale.of(2, 1); left > 0; left -= 1) await round();
      const idle = await spentDuring(read, () => delay(idleMs));
      const rounds: PartTimes[] = [];
      for (let left = scale.of(5, 2); left > 0; left -= 1) {
        const { spent, milliseconds } = await spentDuring(read, round);
        const ofSession = (part: keyof PartTimes) =>
          (spent[part] - (idle.spent[part] * milliseconds) / idle.milliseconds) / sessions;
        rounds.push({ gateway: ofSession("gateway"), worker: ofSession("worker"), postgres: ofSession("postgres") });
      }
      return toRows(rounds, idle);
    } finally {
      await service.stop();
    }
  },
};

interface Spent {
  readonly spent: PartTimes;
  readonly milliseconds: number;
}

function toRows(rounds: readonly PartTimes[], idle: Spent): Row[] {
  const whole = median(rounds.map(({ gateway, worker, postgres }) => gateway + worker + postgres));
  const part = (name: keyof PartTimes): Row => ({
    what: name,
    ours: `${median(rounds.map((times) => times[name])).toFixed(1)} CPU-ms`,
    bare: "",
    verdict: `idle: ${((idle.spent[name] / idle.milliseconds) * 1_000).toFixed(0)} CPU-ms a second, not counted`,
  });
  return [
    { what: "a session", ours: `${whole.toFixed(1)} CPU-ms`, bare: "", verdict: boundVerdict(whole, barMs, "ms") },
    part("gateway"),
    part("worker"),
    part("postgres"),
  ];
}

async function spentDuring(read: () => PartTimes, work: () => Promise<unknown>): Promise<Spent> {
  const beganAt = performance.now();
  const before = read();
  await work();
  const after = read();
  const spent = {
    gateway: after.gateway - before.gateway,
    worker: after.worker - before.worker,
    postgres: after.postgres - before.postgres,
  };
  return { spent, milliseconds: performance.now() - beganAt };
}

/** Creates a reader of CPU times. The worker's children are browsers, which do not count; PostgreSQL's children do. */
function partReader(service: Service): () => PartTimes {
  const [supervisor, control, gateway] = (["supervisor", "control", "gateway"] as const).map(service.pidOf);
  const [worker, postgres] = [service.pidOf("worker"), service.pidOf("postgres")];
  const ours = [supervisor, control, gateway].filter((pid) => pid !== undefined);
  const sum = (): number => ours.reduce((total, pid) => total + ownCpuMs(pid), 0);
  return () => ({ gateway: sum(), worker: ownCpuMs(worker), postgres: treeCpuMs(postgres) });
}
