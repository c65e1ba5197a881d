import { afterAll, afterEach, beforeAll, describe, expect } from "vitest";
import { type Mailbox, startMailbox } from "../support/mailbox.ts";
import { joinTeam } from "../support/people.ts";
import { restClient } from "../support/rest.ts";
import { type Service, startService } from "../support/service.ts";
import { credentialTests } from "./bad-input/credentials.ts";
import { fieldTests } from "./bad-input/fields.ts";
import { repeatTests } from "./bad-input/repeats.ts";
import { requestTests } from "./bad-input/requests.ts";
import type { Scene } from "./bad-input/scene.ts";
import { streamTests } from "./bad-input/streams.ts";

let service: Service | undefined;
let mailbox: Mailbox | undefined;
let sessionId: string | undefined;
let accessToken: string | undefined;

beforeAll(async () => {
  // The tests send from many addresses, which they say as a proxy does.
  mailbox = await startMailbox();
  service = await startService({ TRUSTED_PROXIES: "127.0.0.1", SMTP_URL: mailbox.url });
  const rest = restClient(service);
  sessionId = (await rest("/v1/sessions", {})).body.id;
  // The developer's account has a bucket that no test empties.
  ({ accessToken } = await joinTeam(service.url, mailbox, rest));
});
// Whatever was sent, the service goes on, and so does the session.
afterEach(async () => {
  const { service: live, sessionId: id } = scene();
  const { status, body } = await restClient(live)(`/v1/sessions/${id}/state`);
  expect([status, body.status]).toEqual([200, "live"]);
});
afterAll(async () => {
  await service?.stop();
  await mailbox?.[Symbol.asyncDispose]();
});

function scene(): Scene {
  if (!service || !sessionId || !accessToken) throw new Error("the scene is not set up");
  return { service, sessionId, accessToken };
}

describe("fields", () => fieldTests(scene));
describe("requests", () => requestTests(scene));
describe("credentials", () => credentialTests(scene));
describe("repeats", () => repeatTests(scene));
describe("streams", () => streamTests(scene));
