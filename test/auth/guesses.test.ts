import { afterAll, beforeAll, test } from "vitest";
import { type PeopleDeployment, startPeopleDeployment } from "../support/people-deployment.ts";
import { besiege } from "./guessing.ts";

let people: PeopleDeployment;
beforeAll(async () => {
  people = await startPeopleDeployment();
}, 120_000);
afterAll(() => people?.[Symbol.asyncDispose](), 60_000);

test("guesses at passwords come to nothing over two gateways, and their owner logs in meanwhile", async () => {
  await besiege(people, { guesses: 500, addresses: 4, network: 1 });
}, 120_000);

test("the same while Redis is away", async () => {
  await people.deployment.redis.kill();
  await besiege(people, { guesses: 500, addresses: 4, network: 2 });
}, 120_000);
