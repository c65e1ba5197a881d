import { afterAll, afterEach, beforeAll, describe, expect } from "vitest";
import { restClient } from "../support/rest.ts";
import { type Service, startService } from "../support/service.ts";
import { credentialTests } from "./bad-input/credentials.ts";
import { fieldTests } from "./bad-input/fields.ts";
import { repeatTests } from "./bad-input/repeats.ts";
import { requestTests } from "./bad-input/requests.ts";
import type { Scene } from "./bad-input/scene.ts";
import { streamTests } from "./bad-input/streams.ts";

let service: Service | undefined;
let sessionId: string | undefined;

beforeAll(async () => {
  // The tests send from many addresses, which they say as a proxy does.
  service = await startService({ TRUSTED_PROXIES: "127.0.0.1" });
  const { body } = await restClient(service)("/v1/sessions", {});
  sessionId = body.id;
});
// Whatever was sent, the service goes on, and so does the session.
afterEach(async () => {
  const { service: live, sessionId: id } = scene();
  const { status, body } = await restClient(live)(`/v1/sessions/${id}/state`);
  expect([status, body.status]).toEqual([200, "live"]);
});
afterAll(() => service?.stop());

function scene(): Scene {
  if (!service || !sessionId) throw new Error("the scene is not set up");
  return { service, sessionId };
}

describe("fields", () => fieldTests(scene));
describe("requests", () => requestTests(scene));
describe("credentials", () => credentialTests(scene));
describe("repeats", () => repeatTests(scene));
describe("streams", () => streamTests(scene));
