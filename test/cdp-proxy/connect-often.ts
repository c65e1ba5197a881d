import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { admin } from "../support/admin.ts";
import { BareClient } from "../support/cdp-proxy-scene.ts";
import { restClient } from "../support/rest.ts";
import type { WarmService } from "../support/warm-service.ts";

/** Ways in which clients close their connection normally. */
const closings: readonly ((client: BareClient) => void)[] = [
  ({ socket }) => socket.close(),
  ({ socket }) => socket.close(1000),
  (client) => void client.send("Browser.close").catch(() => undefined),
];

/** Returns the numbers of held slots and of open connections, by the metrics. */
async function readUse(internalUrl: string): Promise<readonly (string | undefined)[]> {
  const metrics = await (await fetch(`${internalUrl}/metrics`)).text();
  const patterns = [
    /^pilothouse_slots\{.*state="held".*\} (\d+)$/m,
    /^pilothouse_open_streams\{.*method="[^"]*Connect".*\} (\d+)$/m,
  ];
  return patterns.map((pattern) => pattern.exec(metrics)?.[1]);
}

/**
 * Connects and closes on a new Free account, each time right after the last close. The documented rate limits are
 * lifted, so that no connection may be refused. Expects no session, slot or stream to be left.
 */
export async function connectOften(
  { url, databaseUrl, internalUrl }: Pick<WarmService, "url" | "databaseUrl" | "internalUrl">,
  turns: number,
): Promise<void> {
  const account = randomUUID();
  const operate = (...args: readonly string[]) => admin({ DATABASE_URL: databaseUrl }, ...args);
  const key = await operate("create-key", "--account", account, "--tier", "free");
  const lifted = ["--value", "10000", "--refill-per-minute", "60000", "--until", "1h"];
  for (const limit of ["global", "sessions:create"])
    await operate("override", "--account", account, "--limit", limit, ...lifted);
  const sessions = new Set<string | undefined>();
  for (let turn = 0; turn < turns; turn += 1) {
    const client = await BareClient.connect(`${url.replace("http", "ws")}/connect/${key}`);
    sessions.add(client.sessionId);
    expect((await client.send("Browser.getVersion")).error).toBeUndefined();
    closings[turn % closings.length]?.(client);
    expect((await client.closed).code).toBeOneOf([1000, 1005]);
  }
  expect(sessions.size).toBe(turns);
  const rest = restClient({ url, key });
  const running = async () => (await rest("/v1/sessions?status=live")).body.data.length;
  await expect.poll(running, { timeout: 5_000 }).toBe(0);
  await expect.poll(() => readUse(internalUrl), { timeout: 20_000 }).toEqual(["0", "0"]);
}
