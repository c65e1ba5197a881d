import { afterAll, beforeAll, test } from "vitest";
import { Deployment } from "../../support/deployment.ts";
import { InputSite } from "../../support/input-site.ts";
import { race } from "./race.ts";

let site: InputSite;
let deployment: Deployment;

beforeAll(async () => {
  site = await InputSite.start();
  deployment = await Deployment.start({
    workers: 1,
    slots: 1,
    workerEnv: { EGRESS_ALLOW: site.host, CLOSE_AT_CPU: "100" },
  });
}, 120_000);

afterAll(async () => {
  await deployment?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
}, 120_000);

test("only one of eight clients has control at any moment, in a thousand rounds", { timeout: 1_200_000 }, async () => {
  const [one, other] = [deployment.gateway(0), deployment.gateway(1)];
  const { body } = await one.rest("/v1/agent-sessions", { timeout_seconds: 3_600 });
  const session = `/v1/sessions/${body.session_id}`;
  await one.rest(`${session}/navigate`, { url: site.url });
  await race({ gateways: [one, other], agent: `/v1/agent-sessions/${body.id}`, session, site, rounds: 1_000 });
});
