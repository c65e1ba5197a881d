import { randomInt } from "node:crypto";
import { expect, test } from "vitest";
import { randomFrom } from "./bytes.ts";
import { casesOf, mutate } from "./cases.ts";
import { Siege } from "./siege.ts";
import { startDeployed, startEmbedded } from "./world.ts";

const minutes = Number(process.env.HOSTILE_MINUTES ?? 30);
const seed = Number(process.env.HOSTILE_SEED ?? randomInt(2 ** 31));
const casesPerClass = 8;
const maxFindings = 5;

test.each([
  ["a deployment", startDeployed],
  ["an embedded service", startEmbedded],
] as const)(
  `%s survives ${minutes / 2} minutes of hostile bytes (seed ${seed})`,
  async (name, start) => {
    await using world = await start();
    const siege = new Siege(world);
    const random = randomFrom(seed);
    const findings: string[] = [];
    const until = performance.now() + minutes * 30_000;
    for (let round = 0; performance.now() < until && findings.length < maxFindings; round += 1) {
      const shots = world.entryPoints.flatMap((entryPoint) => {
        const cases = casesOf(random, world.facts, casesPerClass);
        return cases.map((sent) => ({
          entryPoint,
          sent: random.below(3) === 0 ? sent : mutate(random, sent, random.pick(cases)),
        }));
      });
      const found = await siege.run(shots);
      if (found !== undefined) {
        findings.push(found);
        console.error(`seed ${seed}, round ${round}: ${found}`);
      }
    }
    console.log(`${name}, seed ${seed}:`, siege.counts);
    expect(findings).toEqual([]);
  },
  (minutes + 20) * 60_000,
);
