import { afterAll, beforeAll, expect, test } from "vitest";
import { openDatabase } from "../../../src/platform/postgres/database.ts";
import { silentLog } from "../../support/database.ts";
import { Deployment } from "../../support/deployment.ts";
import { InputSite } from "../../support/input-site.ts";
import { LiveClient } from "../../support/live-client.ts";

let site: InputSite;
let deployment: Deployment;

beforeAll(async () => {
  site = await InputSite.start();
  const workerEnv = { EGRESS_ALLOW: site.host, CLOSE_AT_CPU: "100" };
  deployment = await Deployment.start({ workers: 1, slots: 1, workerEnv });
}, 120_000);

afterAll(async () => {
  await deployment?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
}, 120_000);

test("releases held input and notifies viewers although the gateways die when control has just lapsed", {
  timeout: 120_000,
}, async () => {
  const [one, other] = [deployment.gateway(0), deployment.gateway(1)];
  const { body } = await one.rest("/v1/agent-sessions", {});
  const [agent, session] = [`/v1/agent-sessions/${body.id}`, `/v1/sessions/${body.session_id}`];
  await one.rest(`${session}/navigate`, { url: site.url });
  await one.rest(`${agent}/takeover`, { client_id: "anna" });
  const events = [{ kind: "pointer_down", x: 90, y: 91 }];
  await one.rest(`${agent}/input-event`, { client_id: "anna", events });
  await expect.poll(() => site.told, { timeout: 20_000 }).toContain("mousedown 0 90 91");

  // The worker is stopped while the change is committed, and the gateways are killed before they can notify it.
  deployment.worker(0).signal("SIGSTOP");
  const db = openDatabase({ url: deployment.postgres.url }, silentLog, 1);
  const row = db.sql.selectFrom("sessions").select("control_holder").where("id", "=", body.session_id);
  await db.sql.updateTable("sessions").set({ control_lapses_at: new Date() }).execute();
  const holder = async () => (await row.executeTakeFirstOrThrow()).control_holder;
  await expect.poll(holder, { timeout: 10_000, interval: 20 }).toBeNull();
  await db.close();
  await Promise.all([one.kill(), other.kill()]);
  deployment.worker(0).signal("SIGCONT");
  await other.start();

  await expect.poll(() => site.told, { timeout: 40_000 }).toContain("mouseup 0 90 91");
  const { body: link } = await other.rest(`${session}/view-links`, {});
  using viewer = await LiveClient.join(other.url, new URL(link.url).hash.slice(1));
  const { state } = await viewer.receive((message) => message.state);
  expect(state.control).toMatchObject({ state: "agent_control" });
});
