import { readFileSync } from "node:fs";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterAll, beforeAll, describe } from "vitest";
import { singleUseTests } from "../auth/single-use.ts";
import { poolDemandTest } from "../fleet/scaled-demand.ts";
import { scaledLimitTests } from "../limits/scaled-limits.ts";
import { redisFailoverTests } from "../platform/redis-failover.ts";
import { slotQueueTests } from "../sessions/slot-queue-order.ts";
import { shutdownDelayTest } from "../start/shutdown-delay.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { longDescribe } from "../support/long-test.ts";
import { type PeopleDeployment, startPeopleDeployment } from "../support/people-deployment.ts";
import { RedisSentinels } from "../support/redis-sentinels.ts";
import { scaledTeamTests } from "../teams/scaled-teams.ts";
import { endedBearerTests } from "./support/ended-bearers.ts";

const delaySeconds = 4;

let authority: CertificateAuthority;
let sentinels: RedisSentinels;
let scene: PeopleDeployment;

beforeAll(async () => {
  authority = new CertificateAuthority();
  const tls = authority.issue("redis.test");
  setDefaultCACertificates([...getCACertificates("default"), readFileSync(tls.ca, "utf8")]);
  sentinels = await RedisSentinels.start(tls);
  scene = await startPeopleDeployment({
    gateways: [{ SHUTDOWN_DELAY: String(delaySeconds) }, {}],
    gatewayEnv: { NODE_EXTRA_CA_CERTS: tls.ca },
    redisUrl: sentinels.url,
  });
}, 180_000);
afterAll(async () => {
  await scene?.[Symbol.asyncDispose]();
  await sentinels?.[Symbol.asyncDispose]();
  authority?.[Symbol.dispose]();
}, 120_000);

const sceneOf = () => scene;
const deploymentOf = () => scene.deployment;

describe("a pool", () => poolDemandTest(deploymentOf));

describe("gateways with a worker", () => {
  beforeAll(() => scene.deployment.fakeWorker(0, { slots: 40 }));

  longDescribe("teams", () => scaledTeamTests(sceneOf));
  longDescribe("secrets that are valid once", () => singleUseTests(sceneOf));
  describe("ended credentials", () => endedBearerTests(sceneOf));
  describe("limits", () => scaledLimitTests(deploymentOf));
  describe("Redis with sentinels", () => redisFailoverTests(() => ({ deployment: scene.deployment, sentinels })));
  // The last tests, because each one ends a gateway.
  describe("the queue", () => slotQueueTests(deploymentOf));
  describe("the end", () =>
    shutdownDelayTest(delaySeconds, () => ({ gateway: scene.deployment.gateway(0), key: scene.deployment.key })));
});
