import { afterAll, beforeAll, expect, test } from "vitest";
import { Deployment } from "../support/deployment.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { doTask } from "./journey.ts";
import { connectBy, type SdkClient } from "./sdk-clients.ts";

let site: FixtureSite;
let deployment: Deployment;
let clients: readonly SdkClient[];
beforeAll(async () => {
  site = await new FixtureSite().start();
  deployment = await Deployment.start({ workers: 1, workerEnv: { EGRESS_ALLOW: site.host } });
  const connections = Object.values(connectBy);
  clients = await Promise.all(
    connections.map((connect, index) => connect(deployment.gateway(index).url, deployment.key)),
  );
}, 180_000);
afterAll(async () => {
  await Promise.allSettled((clients ?? []).map((client) => client[Symbol.asyncDispose]()));
  await deployment?.[Symbol.asyncDispose]();
  await site?.stop();
}, 120_000);

const clientAt = (index: number): SdkClient => {
  const client = clients[index % clients.length];
  if (!client) throw new Error("there are no clients");
  return client;
};

test("each call of a task may go to another gateway, by either client", async () => {
  let calls = 0;
  const call: SdkClient["call"] = (name, args) => {
    calls += 1;
    return clientAt(calls).call(name, args);
  };
  await doTask(call, deployment.gateway(0).url, site.url("/login.html"));
}, 120_000);

test("a gateway that is killed loses no session", async () => {
  const { structured } = await clientAt(0).call("start_session");
  const { session_id } = structured;
  await clientAt(0).call("navigate", { session_id, url: site.url("/login.html") });
  await deployment.gateway(0).kill();
  const seen = await clientAt(1).call("observe", { session_id });
  expect(seen.structured.page).toContain("/login.html");
  expect((await clientAt(1).call("end_session", { session_id })).structured.status).toBe("ended");
}, 120_000);
