import type { Clock } from "../../src/platform/clock.ts";
import { type FrontDoor, startFrontDoor } from "../support/front-door.ts";
import type { Rest } from "../support/rest.ts";
import { type Endpoints, startEndpoints } from "./scene.ts";

/** Gateway that may send webhooks to loopback, with receivers there. */
export interface WebhookDoor extends AsyncDisposable {
  readonly door: FrontDoor;
  readonly endpoints: Endpoints;
  /** Creates an account with a unique path, and resets all endpoints to respond with 200. */
  newAccount(): Promise<{ rest: Rest; path: string }>;
}

export async function startWebhookDoor(clock: Clock): Promise<WebhookDoor> {
  const [endpoints, door] = await Promise.all([
    startEndpoints(),
    startFrontDoor({ WEBHOOK_ALLOW: "127.0.0.1" }, { clock }),
  ]);
  let paths = 0;
  return {
    door,
    endpoints,
    async newAccount() {
      endpoints.answer = () => 200;
      paths += 1;
      return { rest: door.as(await door.addAccount()), path: `/endpoint-${paths}` };
    },
    async [Symbol.asyncDispose]() {
      await door[Symbol.asyncDispose]();
      await endpoints[Symbol.asyncDispose]();
    },
  };
}
