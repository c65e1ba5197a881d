import { afterAll, beforeAll, expect, test } from "vitest";
import { Deployment } from "../support/deployment.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { LiveClient } from "../support/live-client.ts";
import { checkOutPrevious, type PreviousRelease } from "../support/previous-release.ts";
import { type Endpoints, register, startEndpoints } from "../webhooks/scene.ts";

let previous: PreviousRelease;
let receiver: Endpoints;
let site: FixtureSite;

beforeAll(async () => {
  [previous, receiver, site] = await Promise.all([checkOutPrevious(), startEndpoints(), new FixtureSite().start()]);
}, 600_000);
afterAll(async () => {
  await site?.stop();
  await receiver?.[Symbol.asyncDispose]();
  await previous?.[Symbol.asyncDispose]();
});

/** Steps of an upgrade, and of a rollback in reverse, with the processes that run the previous release. */
const steps = [
  { step: "after the migration", older: ["control", "gateway", "worker"] },
  { step: "with a newer control process", older: ["gateway", "worker"] },
  { step: "with a newer control process and gateway", older: ["worker"] },
  { step: "with a newer control process and worker", older: ["gateway"] },
] as const;

test.each(steps)(
  "the previous release serves sessions, live frames and webhooks beside this one $step",
  async ({ older }) => {
    await using deployment = await Deployment.start({
      workers: 1,
      gateways: [{}],
      gatewayEnv: { WEBHOOK_ALLOW: "127.0.0.1", MIGRATE: "off", QUEUE_MS: "60000" },
      // The machine may be busy with other tests.
      workerEnv: { EGRESS_ALLOW: site.host, CLOSE_AT_CPU: "100" },
      roots: Object.fromEntries(older.map((kind) => [kind, previous.root])),
    });
    const { rest } = deployment.gateway(0);
    const path = `/${older.join("-")}`;
    await register(rest, receiver.url(path));
    const { status, body: session } = await rest("/v1/sessions", { labels: { step: "one" } });
    expect([status, session]).toMatchObject([201, { status: "live", labels: { step: "one" } }]);
    const at = `/v1/sessions/${session.id}`;
    expect(await rest(`${at}/navigate`, { url: `http://${site.host}/login.html` })).toMatchObject({ status: 200 });
    const { body: screenshot } = await rest(`${at}/capture`, { kind: "screenshot" });
    expect(Buffer.from(screenshot.data, "base64").subarray(1, 4).toString()).toBe("PNG");
    const { body: link } = await rest(`${at}/view-links`, {});
    using viewer = await LiveClient.join(deployment.gateway(0).url, new URL(link.url).hash.slice(1));
    await viewer.see();
    expect((await rest(at, undefined, { method: "DELETE" })).status).toBeLessThan(300);
    expect((await rest(at)).status).toBe(410);
    const types = () => receiver.at(path).map(({ type }) => type);
    await expect.poll(types).toContain("session.completed");
  },
  300_000,
);
