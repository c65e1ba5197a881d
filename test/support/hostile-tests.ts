import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FixtureSite } from "./fixture-site.ts";
import { runHostileCase } from "./hostile-runner.ts";
import type { HostileCase } from "./hostile-step.ts";
import { type Rest, restClient } from "./rest.ts";
import { restDriver } from "./rest-driver.ts";
import { type Service, startService } from "./service.ts";

/** Runs the cases of each runtime, each in a session of its own. */
export function hostileTests(casesOf: Readonly<Record<string, readonly HostileCase[]>>): void {
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

  describe.each(Object.entries(casesOf))("a page in %s", (runtime, cases) => {
    // Most wait for the time of a command to be up, and so do not disturb each other.
    test.for(cases)("$name", { timeout: 60_000, concurrent: true }, async (hostileCase, { onTestFinished }) => {
      const { status, body } = await rest("/v1/sessions", { ...hostileCase.session, runtime });
      expect(status, JSON.stringify(body)).toBe(201);
      const session = `/v1/sessions/${body.id}`;
      onTestFinished(async () => {
        await rest(session, undefined, { method: "DELETE" });
      });
      await runHostileCase(hostileCase, restDriver(rest, session), site.url(""));
    });
  });
}
