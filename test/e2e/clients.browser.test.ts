import { afterAll, beforeAll, describe } from "vitest";
import { FixtureSite } from "../support/fixture-site.ts";
import { restClient } from "../support/rest.ts";
import { type Service, startService } from "../support/service.ts";
import { type OtherOrigin, startOtherOrigin } from "./support/other-origin.ts";
import { connectTests } from "./transports/connect.ts";
import { curlTests } from "./transports/curl.ts";
import { grpcTests } from "./transports/grpc.ts";
import { pageTests } from "./transports/page.ts";
import { reflectionTests } from "./transports/reflection.ts";
import type { Scene } from "./transports/scene.ts";
import { sseTests } from "./transports/sse.ts";

let service: Service | undefined;
let site: FixtureSite | undefined;
let page: OtherOrigin | undefined;
let sessionId: string | undefined;

beforeAll(async () => {
  site = await new FixtureSite().start();
  page = await startOtherOrigin();
  service = await startService({ CORS_ORIGINS: page.permitted, EGRESS_ALLOW: site.host });
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
  return { service, site, page, sessionId };
}

describe("curl", () => curlTests(scene));
describe("gRPC", () => grpcTests(scene));
describe("reflection and health", () => reflectionTests(scene));
describe("@connectrpc/connect-node", () => connectTests(scene));
describe("a page of another origin", () => pageTests(scene));
describe("Server-Sent Events", () => sseTests(scene));
