import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { FixtureSite } from "../support/fixture-site.ts";
import { hostileCases } from "../support/hostile-cases.ts";
import { runHostileCase } from "../support/hostile-runner.ts";
import { type Rest, restClient } from "../support/rest.ts";
import { restDriver } from "../support/rest-driver.ts";
import { runtimes } from "../support/runtimes.ts";
import { borrowService, type WarmService } from "../support/warm-service.ts";

// The runtimes share one engine. They differ in dialogs, permissions, tabs, downloads and error pages.
const cases = runtimes.includes("chromium")
  ? { chromium: hostileCases }
  : { "headless-shell": hostileCases, chromium: hostileCases.filter(({ inBothRuntimes }) => inBothRuntimes) };

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
  const idleSessions: string[] = [];

  async function open(request: object): Promise<string> {
    const { status, body } = await rest("/v1/sessions", { ...request, runtime });
    expect(status, JSON.stringify(body)).toBe(201);
    return `/v1/sessions/${body.id}`;
  }

  // Most cases wait for a command timeout, so they can run concurrently.
  test.for(casesOf)("$name", { timeout: 60_000, concurrent: true }, async (hostileCase, { onTestFinished }) => {
    const session = (hostileCase.keepsSession && idleSessions.pop()) ?? (await open(hostileCase.session ?? {}));
    let isIntact = false;
    onTestFinished(async () => {
      if (isIntact && hostileCase.keepsSession) idleSessions.push(session);
      else await rest(session, undefined, { method: "DELETE" });
    });
    await runHostileCase(hostileCase, restDriver(rest, session), site.url(""));
    isIntact = true;
  });
});
