import { afterAll, beforeAll, expect, test } from "vitest";
import type { FixtureSite } from "../support/fixture-site.ts";
import { type Rest, restClient } from "../support/rest.ts";
import { borrowService, type WarmService } from "../support/warm-service.ts";
import { eventsOf } from "./support/embedded-database.ts";

let site: FixtureSite;
let service: WarmService;
let rest: Rest;

beforeAll(async () => {
  ({ service, site } = await borrowService());
  rest = restClient(service);
});

afterAll(async () => {
  await service?.stop();
  await site?.stop();
});

const eventually = (check: () => Promise<unknown>) => expect.poll(check, { timeout: 15_000, interval: 50 });
const tap = (selector: string) => ({ action: { kind: "tap", selector } });

test("a bot check pauses the session and is reported, and the session resumes once it is passed", async () => {
  const { body: session } = await rest("/v1/sessions", {});
  const path = `/v1/sessions/${session.id}`;
  const landed = await rest(`${path}/navigate`, { url: site.url("/check.html") });
  expect(landed).toMatchObject({ status: 200, body: { status: "paused", http_status: 200 } });
  const challenge = { kind: "generic", url: site.url("/check.html"), detected_at: expect.any(String) };
  const paused = { status: "paused", pause_reason: "generic" };
  expect((await rest(path)).body).toMatchObject(paused);
  expect((await rest(`${path}/state`)).body).toMatchObject({ ...paused, challenge });
  const refusal = { status: 409, body: { type: expect.stringMatching(/\/conflict$/), pause_reason: "generic" } };
  expect(await rest(`${path}/navigate`, { url: site.url("/plain.html") })).toMatchObject(refusal);
  expect(await rest(`${path}/wait`, { condition: { kind: "text", text: "x" } })).toMatchObject(refusal);
  expect(await rest(`${path}/interact`, tap("#pass"))).toMatchObject(refusal);
  expect(await rest(`${path}/capture`, { kind: "screenshot" })).toMatchObject({ status: 200 });
  expect(await rest(`${path}/interact`, { ...tap("#pass"), while_paused: true })).toMatchObject({ status: 200 });
  await eventually(async () => (await rest(path)).body).toMatchObject({ status: "live", pause_reason: null });
  expect(await rest(`${path}/interact`, tap("#go"))).toMatchObject({ status: 200, body: { title: "click go 1" } });
  const events = await eventsOf(service, session.id);
  expect(events.slice(2)).toMatchObject([
    { type: "session.challenge_detected", data: { kind: "generic", url: challenge.url, paused: true } },
    { type: "session.challenge_resolved", data: { session_id: session.id } },
  ]);
});
