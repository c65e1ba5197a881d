import { afterAll, beforeAll, test } from "vitest";
import { type PeopleDeployment, startPeopleDeployment } from "../support/people-deployment.ts";
import { besiege } from "./guessing.ts";

let people: PeopleDeployment;
beforeAll(async () => {
  people = await startPeopleDeployment();
}, 120_000);
afterAll(() => people?.[Symbol.asyncDispose](), 60_000);

test("10,000 password guesses fail, with Redis and without", async () => {
  await besiege(people, { guesses: 10_000, addresses: 10, network: 1 });
  await people.deployment.redis.kill();
  await besiege(people, { guesses: 10_000, addresses: 10, network: 2 });
}, 600_000);
