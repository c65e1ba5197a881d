import { sleep, waitUntil } from "../../src/platform/bounded-wait.ts";
import { type Bench, type Row, ratioVerdict } from "./bench.ts";
import { median, percentile } from "./samples.ts";
import { startWebhookSite, type WebhookAccount, type WebhookSite } from "./webhook-site.ts";

const now = (): number => performance.timeOrigin + performance.now();
const numbersTo = (count: number) => Array.from({ length: count }, (_, index) => index);

const bar = 2;

/** Effect of endpoints that start to hang on endpoints of other accounts. */
export const webhooksHanging: Bench = {
  name: "webhooks-hanging",
  title:
    "30 endpoints, an event a second each, while 100 other accounts cause 3 events at once: these have no endpoints, and then 1,000 that hang",
  async run(scale): Promise<Row[]> {
    // The p99 of one round is decided by a few samples in its first half second, so single rounds vary strongly.
    const [owners, seconds, rounds] = [scale.of(100, 10), scale.of(40, 10), scale.of(3, 1)];
    const [alone, beside]: [number[], number[]] = [[], []];
    let hung = 0;
    for (let round = 0; round < rounds; round += 1) {
      const measured = await measureRound(owners, seconds);
      alone.push(...measured.alone);
      beside.push(...measured.beside);
      hung += measured.hung;
    }
    const [p99, aloneP99] = [percentile(beside, 0.99), percentile(alone, 0.99)];
    return [
      { what: "median", ours: `${median(beside).toFixed(1)} ms`, bare: `${median(alone).toFixed(1)} ms`, verdict: "" },
      {
        what: "p99",
        ours: `${p99.toFixed(1)} ms`,
        bare: `${aloneP99.toFixed(1)} ms`,
        verdict: `${ratioVerdict(p99 / aloneP99, bar)}; ${beside.length} deliveries beside ${hung} that hung`,
      },
    ];
  },
};

/** Measures deliveries of responding endpoints, without and with hanging endpoints, on a new service. */
async function measureRound(owners: number, seconds: number) {
  await using site = await startWebhookSite(owners + 30);
  const sound: WebhookAccount[] = [];
  for (const index of numbersTo(30)) sound.push(await site.account(`sound ${index}`, [`/sound/${index}`]));
  const hanging: WebhookAccount[] = [];
  for (const index of numbersTo(owners)) hanging.push(await site.account(`hanging ${index}`, []));
  const storm = () => Promise.all(hanging.map((account) => account.cause(3)));
  const measureBeside = async () => (await Promise.all([measure(site, sound, seconds), storm()]))[0];
  // Not measured: the first burst takes the service twice as long as later bursts.
  await Promise.all([measure(site, sound, 5), storm()]);
  const alone = await measureBeside();
  for (const [index, account] of hanging.entries())
    await account.register(numbersTo(10).map((place) => `/hang/${index}/${place}`));
  // Waits until the new endpoints are written to disk, as the earlier endpoints were.
  await measure(site, sound, 5);
  const beside = await measureBeside();
  const hung = [...site.arrivals.keys()].filter((name) => name.startsWith("/hang")).length;
  return { alone, beside, hung };
}

/** Creates an event per second for each account. Returns the milliseconds from each response to the arrival. */
async function measure(site: WebhookSite, accounts: readonly WebhookAccount[], seconds: number): Promise<number[]> {
  const isSound = (name: string) => name.startsWith("/sound");
  const before = new Set(site.arrivals.keys());
  const answered = new Map<string, number[]>();
  const runs = accounts.map(async (account, index) => {
    const times: number[] = [];
    answered.set(`/sound/${index}`, times);
    // Spreads the accounts over the second.
    await sleep((1_000 * index) / accounts.length);
    for (let second = 0; second < seconds; second += 1) {
      const begun = now();
      await account.cause(1);
      times.push(now());
      await sleep(Math.max(0, 1_000 - (now() - begun)));
    }
  });
  await Promise.all(runs);
  const fresh = () => [...site.arrivals].filter(([name]) => isSound(name) && !before.has(name));
  await waitUntil(() => fresh().length >= accounts.length * seconds, { timeout: 30_000, every: 20 });
  const byPath = Map.groupBy(fresh(), ([name]) => name.split(" ")[0] ?? "");
  // Each endpoint receives its events in order.
  return [...byPath].flatMap(([path, arrivals]) =>
    arrivals.map(([, at]) => at).map((at, place) => at - (answered.get(path)?.[place] ?? Number.NaN)),
  );
}
