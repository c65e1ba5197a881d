import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readProcess } from "../../workers/isolation/processes.ts";
import { tlsGuideTests } from "../cdp-proxy/tls-guide.ts";
import { randomFrom } from "./bytes.ts";
import { casesOf, honestCases, mutate, slowToRelease } from "./cases.ts";
import { send } from "./send.ts";
import { Siege } from "./siege.ts";
import { startDeployed } from "./world.ts";

const seed = 20_261_124;
const casesPerClass = 2;
let world: Awaited<ReturnType<typeof startDeployed>>;

beforeAll(async () => {
  world = await startDeployed();
});
afterAll(() => world?.[Symbol.asyncDispose]());

// Has long rows, see test/support/long-test.ts.
describe("TLS", () => tlsGuideTests(() => world.tls));

test("the ports answer valid requests sent byte by byte", async () => {
  const honest = honestCases(world.facts);
  const sent = world.entryPoints.flatMap((entryPoint) => {
    if (entryPoint.speaks !== "http" && entryPoint.speaks !== "grpc") return [];
    return honest[entryPoint.speaks].map(async (request) => {
      const answer = await send(entryPoint, request, 2_000);
      expect.soft(answer.toString("latin1"), `${request.name} at ${entryPoint.name}`).toMatch(request.answer);
    });
  });
  await Promise.all(sent);
});

test(`the processes survive hostile bytes of every class at every port (seed ${seed})`, async () => {
  const random = randomFrom(seed);
  const shots = world.entryPoints.flatMap((entryPoint) => {
    const all = casesOf(random, world.facts, casesPerClass);
    const cases = all.filter(({ name }) => !slowToRelease.includes(name));
    return cases.map((sent, index) => ({
      entryPoint,
      sent: index % 3 === 2 ? mutate(random, sent, random.pick(cases)) : sent,
    }));
  });
  expect(await new Siege(world).run(shots)).toBeUndefined();
}, 600_000);

test("the processes exit without waiting for leftovers of hostile connections", async () => {
  const pids = world.parts.flatMap((part) => part.pid() ?? []);
  for (const pid of pids) process.kill(pid, "SIGTERM");
  // Running requests may take up to 30 s. Pings detect within 20 s that the client of such a request has left unnoticed.
  await expect.poll(() => pids.filter((pid) => readProcess(pid)), { timeout: 25_000 }).toEqual([]);
});
