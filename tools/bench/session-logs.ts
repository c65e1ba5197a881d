import { startService } from "../../test/support/service.ts";
import { type Bench, boundVerdict, type Row } from "./bench.ts";
import { Client } from "./client.ts";
import { treeCpuMs } from "./processes.ts";
import { median } from "./samples.ts";
import { startSite } from "./site.ts";

const levels = ["off", "errors", "full"] as const;

/** Bar: additional CPU with `errors` compared with `off`, in percent. */
const bar = 3;

/** Sessions per round and level. */
const sessions = 10;

/** CPU of all processes of the service for a session whose page sends 40 requests, 10 of them failing, by log level. */
export const sessionLogs: Bench = {
  name: "session-logs",
  title: "CPU of a session with 40 requests and 40 console lines, all processes with browsers, by its log level",
  async run(scale): Promise<Row[]> {
    await using site = await startSite();
    const service = await startService({ EGRESS_ALLOW: site.host });
    try {
      using client = new Client(service);
      const run = async (logs: string): Promise<void> => {
        const session = await client.create({ logs });
        await client.post(`${session}/navigate`, { url: site.requestsUrl });
        await client.post(`${session}/wait`, { condition: { kind: "network_idle" } });
        await client.destroy(session);
      };
      const root = service.pidOf("supervisor");
      const spent = async (logs: string): Promise<number> => {
        const before = treeCpuMs(root);
        for (let left = sessions; left > 0; left -= 1) await run(logs);
        return (treeCpuMs(root) - before) / sessions;
      };
      const rounds: Record<(typeof levels)[number], number[]> = { off: [], errors: [], full: [] };
      for (let left = scale.of(2, 1); left > 0; left -= 1) for (const level of levels) await spent(level);
      // The levels alternate, so that a drift of the machine affects all alike. Every other round is in reverse order,
      // because the cleanup after a session is measured with the next level.
      for (let round = 0; round < scale.of(12, 2); round += 1)
        for (const level of round % 2 === 0 ? levels : levels.toReversed()) rounds[level].push(await spent(level));
      return toRows(rounds);
    } finally {
      await service.stop();
    }
  },
};

function toRows(rounds: Record<(typeof levels)[number], number[]>): Row[] {
  // Compares neighbouring measurements, so that a drift cancels out.
  const more = (level: "errors" | "full") =>
    median(rounds[level].map((ms, index) => (ms / (rounds.off[index] ?? ms) - 1) * 100));
  const row = (level: (typeof levels)[number], verdict: string): Row => ({
    what: level,
    ours: `${median(rounds[level]).toFixed(1)} CPU-ms`,
    bare: `${median(rounds.off).toFixed(1)} CPU-ms`,
    verdict,
  });
  return [
    row("off", ""),
    row("errors", boundVerdict(more("errors"), bar, "% more")),
    row("full", `${more("full").toFixed(1)} % more`),
  ];
}
