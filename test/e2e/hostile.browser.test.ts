import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { FixtureSite } from "../support/fixture-site.ts";
import { hostileCases, longHostileCases } from "../support/hostile-cases.ts";
import { runHostileCase } from "../support/hostile-runner.ts";
import { withLong } from "../support/long-test.ts";
import { type Rest, restClient } from "../support/rest.ts";
import { restDriver } from "../support/rest-driver.ts";
import { runtimes } from "../support/runtimes.ts";
import { borrowService, type WarmService } from "../support/warm-service.ts";

// The runtimes share one engine. They differ in dialogs, permissions, tabs, downloads and error pages.
const all = withLong(hostileCases, longHostileCases);
const cases = runtimes.includes("chromium")
  ? { chromium: all }
  : { "headless-shell": all, chromium: hostileCases.filter(({ inBothRuntimes }) => inBothRuntimes) };

let site: FixtureSite;
let service: WarmService | undefined;
let rest: Rest;

beforeAll(async () => {
  ({ site, service } = await borrowService());
  rest = restClient(service);
});

afterAll(async () => {
  await service?.stop();
  await site?.stop();
});

describe.each(Object.entries(cases))("a page in %s", (runtime, casesOf) => {
  /** Session that the next case uses too, unless a case fails in it. */
  let shared: string | undefined;

  async function open(): Promise<string> {
    const { status, body } = await rest("/v1/sessions", { runtime });
    expect(status, JSON.stringify(body)).toBe(201);
    return `/v1/sessions/${body.id}`;
  }

  test.for(casesOf)("$name", { timeout: 60_000 }, async (hostileCase) => {
    const session = shared ?? (await open());
    shared = undefined;
    await runHostileCase(hostileCase, restDriver(rest, session), site.url(""));
    for (const { id: page_id } of (await rest(`${session}/state`)).body.pages.slice(1))
      await rest(`${session}/interact`, { action: { kind: "close_page", page_id } });
    shared = session;
  });
});
