import { afterAll, beforeAll, expect, test } from "vitest";
import { DoomedService } from "../chaos/doomed-service.ts";
import { BareClient } from "../support/cdp-proxy-scene.ts";
import { connectOften } from "./connect-often.ts";

let doomed: DoomedService;
beforeAll(async () => {
  doomed = await DoomedService.start();
}, 120_000);
afterAll(() => doomed?.[Symbol.asyncDispose]());

test("200 connections on Free leave neither sessions, slots, streams nor browsers behind", async () => {
  const before = doomed.browsers.length;
  await connectOften(doomed.service, 200);
  // The pool has as many browsers as before once the demand is past.
  await expect.poll(() => doomed.browsers.length, { timeout: 60_000, interval: 1_000 }).toBeLessThanOrEqual(before);
}, 600_000);

test("a session ends 30 s after the last connection broke", async () => {
  const { url, key } = doomed.service;
  const client = await BareClient.connect(`${url.replace("http", "ws")}/connect/${key}`);
  const find = async () => (await doomed.rest(`/v1/sessions?limit=1`)).body.data[0];
  const brokeAt = Date.now();
  client.socket.terminate();
  await expect.poll(async () => (await find()).status, { timeout: 60_000, interval: 500 }).toBe("destroyed");
  const { id, ended_reason, ended_at } = await find();
  expect([id, ended_reason]).toEqual([client.sessionId, "destroyed"]);
  const lasted = Date.parse(ended_at) - brokeAt;
  expect(lasted).toBeGreaterThanOrEqual(30_000);
  expect(lasted).toBeLessThan(33_000);
}, 90_000);

test("ends with nothing left behind", async () => {
  await doomed.expectCleanEnd();
}, 60_000);
