import { afterAll, beforeAll, describe } from "vitest";
import { singleUseTests } from "../auth/single-use.ts";
import { longDescribe } from "../support/long-test.ts";
import { type PeopleDeployment, startPeopleDeployment } from "../support/people-deployment.ts";
import { scaledTeamTests } from "../teams/scaled-teams.ts";
import { endedBearerTests } from "./support/ended-bearers.ts";

let scene: PeopleDeployment;

beforeAll(async () => {
  scene = await startPeopleDeployment();
}, 120_000);
afterAll(() => scene?.[Symbol.asyncDispose](), 60_000);

const sceneOf = () => scene;

longDescribe("teams", () => scaledTeamTests(sceneOf));
longDescribe("secrets that are valid once", () => singleUseTests(sceneOf));
describe("ended credentials", () => endedBearerTests(sceneOf));
