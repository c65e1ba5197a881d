import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { FixtureSite } from "../../support/fixture-site.ts";
import { type Mailbox, startMailbox } from "../../support/mailbox.ts";
import { joinTeam, type Person } from "../../support/people.ts";
import { restClient } from "../../support/rest.ts";
import { type Service, startService } from "../../support/service.ts";
import type { GetScene, Scene } from "./scene.ts";

/** Starts a service for the tests of a file. After each test, checks that the service and the session still run. */
export function useScene(): GetScene {
  let service: Service | undefined;
  let mailbox: Mailbox | undefined;
  let sessionId: string | undefined;
  let site: FixtureSite | undefined;
  let person: Person | undefined;

  beforeAll(async () => {
    // The tests set their client addresses by X-Forwarded-For.
    mailbox = await startMailbox();
    site = await new FixtureSite().start();
    service = await startService({ EGRESS_ALLOW: site.host, TRUSTED_PROXIES: "127.0.0.1", SMTP_URL: mailbox.url });
    const rest = restClient(service);
    sessionId = (await rest("/v1/sessions", {})).body.id;
    // The bucket of the developer's account is too large for any test to empty.
    person = await joinTeam(service.url, mailbox, rest);
  });
  afterEach(async () => {
    const { service: live, sessionId: id } = scene();
    const { status, body } = await restClient(live)(`/v1/sessions/${id}/state`);
    expect([status, body.status]).toEqual([200, "live"]);
  });
  afterAll(async () => {
    await service?.stop();
    await mailbox?.[Symbol.asyncDispose]();
    await site?.stop();
  });

  return scene;

  function scene(): Scene {
    if (!service || !site || !mailbox || !sessionId || !person) throw new Error("the scene is not set up");
    return { service, site, mailbox, sessionId, person, accessToken: person.accessToken };
  }
}
