import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SessionLogLevel } from "../../../src/gen/pilothouse/v1/session_log_pb.ts";
import { waitUntil } from "../../../src/platform/bounded-wait.ts";
import { fleetCommands } from "../../../src/platform/grpc/fleet-commands.ts";
import { TestSite } from "../../support/test-site.ts";
import { WorkerUnderTest } from "../../support/worker-under-test.ts";

const secret = `canary${randomBytes(8).toString("hex")}`;

/** A page that writes a secret to its console and its address, also before the session has received it. */
class LeakySite extends TestSite {
  protected override answer(_request: IncomingMessage, response: ServerResponse): void {
    response.writeHead(200, { "content-type": "text/html" }).end(`<!DOCTYPE html><title>Leaky</title><script>
      console.log("a ${secret} b");
      history.pushState(null, "", "/${secret}");
      setTimeout(() => { throw new Error("${secret}"); });
    </script>`);
  }
}

const site = new LeakySite();
let worker: WorkerUnderTest;
beforeAll(async () => {
  await site.start();
  worker = await WorkerUnderTest.start(site.hosts);
});
afterAll(async () => {
  await worker?.stop();
  await site.stop();
});

test("the log masks variables, also in entries from before the session received them", async () => {
  const session = await worker.open({ logs: SessionLogLevel.FULL });
  await session.navigate({ url: `http://${site.host}/` });
  const read = async () => {
    const { entries } = await session.run(fleetCommands.readLog, { limit: 100 });
    return JSON.stringify(entries.map(({ url, text }) => [url, text]));
  };
  const isComplete = async () => (await read()).split(secret).length === 4;
  expect(await waitUntil(isComplete, { timeout: 10_000, every: 50 }), await read()).toBe(true);
  const variables = [{ name: "card", value: secret, domains: [site.host] }];
  await session.observe({}, { variables });
  const masked = await read();
  expect(masked).not.toContain(secret);
  expect(masked.split("{{card}}")).toHaveLength(4);
  await session.destroy();
});
