import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { insertAccount } from "../../src/accounts/store.ts";
import { createKey } from "../../src/identity/api-keys/api-keys.ts";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import { type Database, openDatabase } from "../../src/platform/postgres/database.ts";
import { silentLog } from "../../test/support/database.ts";
import { Deployment } from "../../test/support/deployment.ts";
import type { FakeWorker } from "../../test/support/fake-worker.ts";
import { type Rest, restClient } from "../../test/support/rest.ts";
import { meetChallenges, register } from "../../test/webhooks/scene.ts";
import type { ReceiverNews } from "./webhook-receiver.ts";

const ids = createIds(systemClock);

/** An account with endpoints, whose events belong to one session. */
export interface WebhookAccount {
  readonly rest: Rest;
  /** Creates an endpoint at each path. */
  register(paths: readonly string[]): Promise<void>;
  cause(count: number): Promise<void>;
}

/** A gateway for requests, one for deliveries, and a receiver. */
export interface WebhookSite extends AsyncDisposable {
  readonly deployment: Deployment;
  /** First arrival of each delivery by path and event, in milliseconds since the Unix epoch. */
  readonly arrivals: ReadonlyMap<string, number>;
  url(path: string): string;
  /** Waits for a number of arrivals. */
  until(count: number, timeout?: number): Promise<void>;
  /** Creates an account with an endpoint at each path. */
  account(name: string, paths: readonly string[]): Promise<WebhookAccount>;
}

export async function startWebhookSite(slots: number): Promise<WebhookSite> {
  const child = fork(new URL("webhook-receiver.ts", import.meta.url));
  const arrivals = new Map<string, number>();
  const port = Promise.withResolvers<number>();
  child.on("message", (news: ReceiverNews) => {
    if ("port" in news) return port.resolve(news.port);
    for (const [name, at] of news.arrivals) if (!arrivals.has(name)) arrivals.set(name, at);
  });
  const deployment = await Deployment.start({
    workers: 0,
    gateways: [{ ROLE: "api" }, { ROLE: "jobs" }],
    gatewayEnv: { WEBHOOK_ALLOW: "127.0.0.1", LOG_LEVEL: "warn" },
  });
  const db = openDatabase({ url: deployment.postgres.url }, silentLog);
  const worker = await deployment.fakeWorker(0, { slots });
  const base = `http://127.0.0.1:${await port.promise}`;
  return {
    deployment,
    arrivals,
    url: (path) => `${base}${path}`,
    async until(count, timeout = 120_000) {
      const isReceived = () => arrivals.size >= count;
      if (await waitUntil(isReceived, { timeout, every: 5 })) return;
      throw new Error(`expected ${count} deliveries, got ${arrivals.size}`);
    },
    async account(name, paths) {
      const account = await makeAccount({ deployment, db, worker, base }, name);
      await account.register(paths);
      return account;
    },
    async [Symbol.asyncDispose]() {
      await db.close();
      await deployment[Symbol.asyncDispose]();
      await endReceiver(child);
    },
  };
}

async function endReceiver(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  child.disconnect();
  await ended;
}

interface AccountParts {
  readonly deployment: Deployment;
  readonly db: Database;
  readonly worker: FakeWorker;
  /** URL of the receiver. */
  readonly base: string;
}

async function makeAccount({ deployment, db, worker, base }: AccountParts, name: string): Promise<WebhookAccount> {
  // By SQL, since the admin command would need a process for each account.
  const key = await db.transaction(async (tx) => {
    const accountId = ids.next("acc");
    await insertAccount(tx, { id: accountId, name, tier: "enterprise" });
    return (await createKey(tx, ids, { accountId, name })).token;
  });
  const rest = restClient({ url: deployment.gateway(0).url, key });
  const session = (await rest("/v1/sessions", {})).body.id;
  let last = 0;
  return {
    rest,
    async register(paths) {
      for (const path of paths) await register(rest, `${base}${path}`, { events: ["session.challenge_detected"] });
    },
    async cause(count) {
      const first = last + 1;
      last += count;
      await meetChallenges(worker, session, [first, last]);
    },
  };
}
