import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FixtureSite } from "../support/fixture-site.ts";
import { hostileCases } from "../support/hostile-cases.ts";
import { runHostileCase } from "../support/hostile-runner.ts";
import { type Rest, restClient } from "../support/rest.ts";
import { restDriver } from "../support/rest-driver.ts";
import { type Service, startService } from "../support/service.ts";

let site: FixtureSite;
let service: Service | undefined;
let rest: Rest;

beforeAll(async () => {
  site = await new FixtureSite().start();
  service = await startService({ EGRESS_ALLOW: site.host });
  rest = restClient(service);
});

afterAll(async () => {
  await service?.stop();
  await site?.stop();
});

describe.each(["headless-shell", "chromium"])("a page in %s", (runtime) => {
  // Most wait for the time of a command to be up, and so do not disturb each other.
  test.for(hostileCases)("$name", { timeout: 60_000, concurrent: true }, async (hostileCase, { onTestFinished }) => {
    const { status, body } = await rest("/v1/sessions", { ...hostileCase.session, runtime });
    expect(status, JSON.stringify(body)).toBe(201);
    const session = `/v1/sessions/${body.id}`;
    onTestFinished(async () => {
      await rest(session, undefined, { method: "DELETE" });
    });
    await runHostileCase(hostileCase, restDriver(rest, session), site.url(""));
  });
});
