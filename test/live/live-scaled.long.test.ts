import type { Browser } from "playwright";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type DeployedGateway, Deployment } from "../support/deployment.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { LiveClient } from "../support/live-client.ts";
import { openLink, says, takeControl } from "../support/live-viewer.ts";
import { launchPlainBrowser } from "../support/plain-browser.ts";

const site = new FixtureSite();
let deployment: Deployment;
let browser: Browser;
beforeAll(async () => {
  await site.start();
  const gatewayEnv = { EGRESS_ALLOW: site.host };
  [deployment, browser] = await Promise.all([
    Deployment.start({ workers: 1, gatewayEnv, workerEnv: { CLOSE_AT_CPU: "100" } }),
    launchPlainBrowser(),
  ]);
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await deployment?.[Symbol.asyncDispose]();
  await site.stop();
}, 60_000);

test("a viewer is told to reconnect when its gateway restarts, and its page reconnects", async () => {
  const gateway = deployment.gateway(0);
  const { body: session, status: created } = await gateway.rest("/v1/sessions", {});
  expect(created).toBe(201);
  const path = `/v1/sessions/${session.id}`;
  await gateway.rest(`${path}/navigate`, { url: site.url("/colours.html?red") });
  const { body: link } = await gateway.rest(`${path}/view-links`, {});
  const page = await browser.newPage();
  await page.goto(link.url);
  const status = () => page.locator("#status").textContent();
  const pollOptions = { timeout: 30_000 };
  await expect.poll(status, pollOptions).toBe("Live");
  using viewer = await LiveClient.join(gateway.url, new URL(link.url).hash.slice(1));
  await viewer.see();

  await gateway.stop();
  expect(await viewer.closed).toEqual({ code: 1012, reason: "" });
  await expect.poll(status, pollOptions).toBe("Connecting");
  // Another viewer watches through the other gateway.
  using other = await LiveClient.join(deployment.gateway(1).url, deployment.key, { session_id: session.id });
  await other.receive(({ viewers }) => viewers?.viewers.length === 1);
  await gateway.start();
  await expect.poll(status, pollOptions).toBe("Live");
  await other.receive(({ viewers }) => viewers?.viewers.length === 2);
  await page.close();
}, 120_000);

test("viewers reconnect after the kill of a gateway, and are notified of the kill of the worker", async () => {
  const [killed, other] = [deployment.gateway(0), deployment.gateway(1)];
  const { body: session, status: created } = await other.rest("/v1/sessions", {});
  expect(created).toBe(201);
  const path = `/v1/sessions/${session.id}`;
  await other.rest(`${path}/navigate`, { url: site.url("/colours.html?red") });
  const linkBy = async (gateway: DeployedGateway, request: object) => {
    const { hash } = new URL((await other.rest(`${path}/view-links`, request)).body.url);
    return `${gateway.url}/live${hash}`;
  };
  const [ada, ben, cleo] = await Promise.all([
    openLink(browser, await linkBy(killed, { control: true, name: "Ada" })),
    openLink(browser, await linkBy(killed, { name: "Ben" })),
    openLink(browser, await linkBy(other, { name: "Cleo" })),
  ]);
  const all = [ada.page, ben.page, cleo.page];
  await takeControl(ada.page);

  await killed.kill();
  await says(cleo.page, "viewers", "1 watching");
  await killed.start();
  for (const page of all) await says(page, "viewers", "3 watching");
  await says(ada.page, "control-status", "You have control");
  await says(cleo.page, "control-status", "Ada has control");

  await deployment.worker(0).kill();
  for (const page of all) await says(page, "notice", "The machine that ran its browser was lost.");
  await deployment.worker(0).start();
  for (const { page } of [ada, ben, cleo]) await page.context().close();
  await expect.poll(async () => (await other.rest(`${path}/view-links`)).status, { timeout: 30_000 }).toBe(410);
}, 150_000);
