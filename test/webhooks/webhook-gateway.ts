import type { Clock } from "../../src/platform/clock.ts";
import type { Rest } from "../support/rest.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";
import { type Endpoints, startEndpoints } from "./scene.ts";

/** Gateway that may send webhooks to loopback, with receivers there. */
export interface WebhookGateway extends AsyncDisposable {
  readonly gateway: TestGateway;
  readonly endpoints: Endpoints;
  /** Creates an account with a unique path, and resets all endpoints to respond with 200. */
  newAccount(): Promise<{ rest: Rest; path: string }>;
}

export async function startWebhookGateway(clock: Clock): Promise<WebhookGateway> {
  const [endpoints, gateway] = await Promise.all([
    startEndpoints(),
    startTestGateway({ WEBHOOK_ALLOW: "127.0.0.1" }, { clock }),
  ]);
  let paths = 0;
  return {
    gateway,
    endpoints,
    async newAccount() {
      endpoints.answer = () => 200;
      paths += 1;
      return { rest: gateway.as(await gateway.addAccount()), path: `/endpoint-${paths}` };
    },
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await endpoints[Symbol.asyncDispose]();
    },
  };
}
