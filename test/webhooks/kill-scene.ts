import { expect } from "vitest";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { Deployment } from "../support/deployment.ts";
import { restClient } from "../support/rest.ts";
import { type Arrival, meetChallenges, register, startEndpoints } from "./scene.ts";

/** Size of the test: accounts, endpoints per account, events per endpoint, and gateway kills. */
export interface Ordeal {
  readonly accounts: number;
  readonly endpoints: number;
  readonly events: number;
  readonly kills: number;
}

/** Timeout of each wait, in milliseconds. */
const timeout = 400_000;

/** Milliseconds that may pass before this process reads what a gateway sent before its kill. */
const lateness = 2_000;

/** Events caused concurrently. */
const wave = 5;

/** Two gateways deliver events and are killed and restarted in turn, while a third one serves requests. */
export async function goThrough({ accounts, endpoints: each, events, kills }: Ordeal): Promise<string> {
  // The delay ensures that each kill interrupts some deliveries.
  await using receiver = await startEndpoints((_, response) => {
    setTimeout(() => response.writeHead(200).end(), 5 + Math.random() * 20);
    return undefined;
  });
  await using deployment = await Deployment.start({
    workers: 0,
    gateways: [{ ROLE: "api" }, { ROLE: "jobs" }, { ROLE: "jobs" }],
    gatewayEnv: { WEBHOOK_ALLOW: "127.0.0.1" },
  });
  const worker = await deployment.fakeWorker(0, { slots: accounts });
  const { url } = deployment.gateway(0);
  const begun = performance.now();
  const rests = await Promise.all(
    Array.from({ length: accounts }, async (_, account) => {
      const rest = restClient({ url, key: await deployment.createKey(`account ${account}`) });
      const types = { events: ["session.challenge_detected"] };
      for (let index = 0; index < each; index += 1) await register(rest, receiver.url(`/${account}/${index}`), types);
      return rest;
    }),
  );
  const sessions = await Promise.all(rests.map(async (rest) => (await rest("/v1/sessions", {})).body.id as string));
  const causing = Promise.all(
    sessions.map(async (session) => {
      for (let first = 1; first <= events; first += wave)
        await meetChallenges(worker, session, [first, Math.min(events, first + wave - 1)]);
    }),
  );
  const total = accounts * each * events;
  const killedAt: number[] = [];
  for (let kill = 1; kill <= kills; kill += 1) {
    const share = (total * kill) / (kills + 2);
    const hasCome = () => distinct(receiver.arrivals).size >= share;
    expect(await waitUntil(hasCome, { timeout, every: 20 })).toBe(true);
    const victim = deployment.gateway(1 + (kill % 2));
    await victim.kill();
    killedAt.push(performance.now());
    await victim.start();
  }
  await causing;
  expect(
    await waitUntil(() => distinct(receiver.arrivals).size === total, { timeout, every: 50 }),
    `${distinct(receiver.arrivals).size} of ${total} were received`,
  ).toBe(true);
  // All deliveries are marked as delivered once the leases of the killed gateways have expired.
  const left = async () => {
    const pages = await Promise.all(rests.map((rest) => rest("/v1/webhooks?limit=100")));
    const counts = pages.flatMap(({ body }) => body.data.map((endpoint: { delivery_counts: Counts }) => endpoint));
    return counts.filter(({ delivery_counts: { delivered } }) => delivered !== events).length;
  };
  expect(await waitUntil(async () => (await left()) === 0, { timeout, every: 250 })).toBe(true);
  const repeated = checkArrivals(receiver.arrivals, total, killedAt);
  const seconds = ((performance.now() - begun) / 1_000).toFixed(1);
  return `${total} deliveries to ${accounts * each} endpoints with ${killedAt.length} kills took ${seconds} s; ${repeated} were repeated`;
}

interface Counts {
  readonly delivered: number;
}

const nameOf = ({ path, eventId }: Arrival): string => `${path} ${eventId}`;

const distinct = (arrivals: readonly Arrival[]) => new Set(arrivals.map(nameOf));

/** Expects all events in order, with repeats only after a kill. Returns the number of repeats. */
function checkArrivals(arrivals: readonly Arrival[], total: number, kills: readonly number[]): number {
  const deliveries = [...Map.groupBy(arrivals, nameOf).values()];
  const firsts = deliveries.flatMap(([first]) => first ?? []);
  const unexplained = deliveries.flatMap((comings) =>
    comings.slice(1).filter(({ at }, index) => {
      const before = comings[index]?.at ?? 0;
      return !kills.some((kill) => before <= kill + lateness && at >= kill);
    }),
  );
  expect(unexplained).toEqual([]);
  expect(firsts).toHaveLength(total);
  expect(new Set(firsts.map(({ path, number }) => `${path} ${number}`)).size).toBe(total);
  const outOfOrder = [...Map.groupBy(firsts, ({ path }) => path).values()].filter((order) =>
    order.some(({ number }, index) => number !== index + 1),
  );
  expect(outOfOrder).toEqual([]);
  return arrivals.length - firsts.length;
}
