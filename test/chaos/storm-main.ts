// npm run storm: kills two gateways, three workers, PostgreSQL and Redis in turn while they serve sessions. The first
// argument is the number of sessions, by default 200.
import { runStorm } from "./storm.ts";

const sessions = Number(process.argv[2] ?? 200);
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const report = await runStorm({ sessions, waves: 5, atOnce: 8, killEvery: 10_000 }, say);
say(`answers: ${[...report.answers].map(([kind, count]) => `${kind} x${count}`).join(", ")}`);
say(`ended: ${[...report.endings].map(([reason, count]) => `${reason} x${count}`).join(", ")}`);
for (const { name, before, after } of report.memory) {
  const change = (((after - before) / before) * 100).toFixed(1);
  say(`memory of ${name}: ${before.toFixed(1)} MiB after wave 2, ${after.toFixed(1)} MiB after the last (${change} %)`);
}
for (const fault of report.faults) say(`fault: ${fault}`);
say(report.faults.length === 0 ? "nothing was lost and nothing is left" : `${report.faults.length} faults`);
process.exitCode = report.faults.length === 0 ? 0 : 1;
