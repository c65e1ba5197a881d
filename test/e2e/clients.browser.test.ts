import { afterAll, beforeAll, describe } from "vitest";
import type { FixtureSite } from "../support/fixture-site.ts";
import { withLong } from "../support/long-test.ts";
import { restClient } from "../support/rest.ts";
import { borrowService, type WarmService } from "../support/warm-service.ts";
import { type OtherOrigin, startOtherOrigin } from "./support/other-origin.ts";
import { connectTests, longTransports, transports } from "./transports/connect.ts";
import { curlTests } from "./transports/curl.ts";
import { grpcTests } from "./transports/grpc.ts";
import { pageTests } from "./transports/page.ts";
import { reflectionTests } from "./transports/reflection.ts";
import type { Scene } from "./transports/scene.ts";
import { sseTests } from "./transports/sse.ts";

let service: WarmService | undefined;
let site: FixtureSite | undefined;
let page: OtherOrigin | undefined;
let sessionId: string | undefined;
let welcome = "";

beforeAll(async () => {
  const borrowed = await borrowService();
  ({ service, site, welcome } = borrowed);
  page = await startOtherOrigin(borrowed.permittedPort);
  const created = await restClient(service)("/v1/sessions", {});
  sessionId = created.body.id;
});
afterAll(async () => {
  await page?.[Symbol.asyncDispose]();
  await service?.stop();
  await site?.stop();
});

function scene(): Scene {
  if (!service || !site || !page || !sessionId) throw new Error("the scene is not set up");
  return { service, site, page, sessionId, welcome };
}

describe("curl", () => curlTests(scene));
describe("gRPC", () => grpcTests(scene));
describe("reflection and health", () => reflectionTests(scene));
describe("@connectrpc/connect-node", () => connectTests(scene, withLong(transports, longTransports)));
describe("a page of another origin", () => pageTests(scene));
describe("Server-Sent Events", () => sseTests(scene));
