import { afterAll, beforeAll, describe } from "vitest";
import { singleUseTests } from "../auth/single-use.ts";
import { poolDemandTest } from "../fleet/scaled-demand.ts";
import { scaledLimitTests } from "../limits/scaled-limits.ts";
import { slotQueueTests } from "../sessions/slot-queue-order.ts";
import { shutdownDelayTest } from "../start/shutdown-delay.ts";
import { longDescribe } from "../support/long-test.ts";
import { type PeopleDeployment, startPeopleDeployment } from "../support/people-deployment.ts";
import { scaledTeamTests } from "../teams/scaled-teams.ts";
import { endedBearerTests } from "./support/ended-bearers.ts";

const delaySeconds = 4;

let scene: PeopleDeployment;

beforeAll(async () => {
  scene = await startPeopleDeployment([{ SHUTDOWN_DELAY: String(delaySeconds) }, {}]);
}, 120_000);
afterAll(() => scene?.[Symbol.asyncDispose](), 60_000);

const sceneOf = () => scene;
const deploymentOf = () => scene.deployment;

describe("a pool", () => poolDemandTest(deploymentOf));

describe("gateways with a worker", () => {
  beforeAll(() => scene.deployment.fakeWorker(0, { slots: 40 }));

  longDescribe("teams", () => scaledTeamTests(sceneOf));
  longDescribe("secrets that are valid once", () => singleUseTests(sceneOf));
  describe("ended credentials", () => endedBearerTests(sceneOf));
  describe("limits", () => scaledLimitTests(deploymentOf));
  // The last tests, because each one ends a gateway.
  describe("the queue", () => slotQueueTests(deploymentOf));
  describe("the end", () =>
    shutdownDelayTest(delaySeconds, () => ({ gateway: scene.deployment.gateway(0), key: scene.deployment.key })));
});
