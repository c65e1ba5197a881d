import { sql } from "kysely";
import { insertAccount } from "../../src/accounts/store.ts";
import { createKey } from "../../src/identity/api-keys/api-keys.ts";
import { sleep, waitUntil } from "../../src/platform/bounded-wait.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import { type Database, openDatabase } from "../../src/platform/postgres/database.ts";
import { silentLog } from "../support/database.ts";
import { Deployment } from "../support/deployment.ts";
import {
  type ProcessorServer,
  processorEnv,
  type SentNotice,
  startProcessorServer,
} from "../support/processor-server.ts";
import { type Answer, restClient } from "../support/rest.ts";

/** Account that calls both gateways. */
export interface Payer {
  readonly accountId: string;
  /** Calls a gateway by its number. Retries while the gateway is killed or responds with 429 or 5xx. */
  call(gateway: number, path: string, body?: object): Promise<Answer>;
}

/** Two gateways, with the payment processors as a separate server. */
export interface MoneyDeployment extends AsyncDisposable {
  readonly deployment: Deployment;
  readonly processor: ProcessorServer;
  readonly db: Database;
  payer(): Promise<Payer>;
  /** Delivers a notice, with retries until the gateway responds with 200. */
  deliver(notice: SentNotice, gateway: number): Promise<void>;
  /** Triggers the lookup of all orders and customers, and waits until all jobs are done. */
  reconcile(): Promise<void>;
}

/** Returns whether a response must be retried. */
const isPassing = ({ status }: Answer): boolean => status === 429 || status >= 500;

/** Milliseconds that a killed gateway may be unavailable. */
const away = 60_000;

export async function startMoneyDeployment(): Promise<MoneyDeployment> {
  const processor = await startProcessorServer(Date.now);
  const deployment = await Deployment.start({ workers: 0, gatewayEnv: processorEnv(processor) });
  const db = openDatabase({ url: deployment.postgres.url }, silentLog, 4);
  const ids = createIds(systemClock);

  /** Retries until `run` returns a value. */
  async function insist<T>(run: () => Promise<T | undefined>): Promise<T> {
    const giveUpAt = performance.now() + away;
    for (;;) {
      const result = await run().catch(() => undefined);
      if (result !== undefined) return result;
      if (performance.now() > giveUpAt) throw new Error("a gateway stays away");
      await sleep(100);
    }
  }

  return {
    deployment,
    processor,
    db,
    async payer() {
      const accountId = ids.next("acc");
      const { token: key } = await db.transaction(async (tx) => {
        await insertAccount(tx, { id: accountId, name: accountId, tier: "free" });
        return createKey(tx, ids, {
          accountId,
          name: "payer",
          scopes: ["billing:read", "billing:write", "webhooks:read"],
        });
      });
      return {
        accountId,
        call(gateway, path, body) {
          const rest = restClient({ url: deployment.gateway(gateway).url, key });
          const headers = { "idempotency-key": ids.next("req") };
          return insist(async () => {
            const answer = await rest(path, body, body && { headers });
            return isPassing(answer) ? undefined : answer;
          });
        },
      };
    },
    async deliver({ processor: name, headers, body }, gateway) {
      const init = { method: "POST", headers: { ...headers, "content-type": "application/json" }, body };
      await insist(async () => {
        const { status } = await fetch(`${deployment.gateway(gateway).url}/processors/${name}`, init);
        return status === 200 ? status : undefined;
      });
    },
    async reconcile() {
      await sql`update crypto_orders set look_at = now() where look_at is not null`.execute(db.sql);
      await sql`update card_checkouts set look_at = now() where look_at is not null and not exists
        (select from card_subscriptions s where s.customer_id = card_checkouts.customer_id)`.execute(db.sql);
      const isQuiet = async () => {
        const { rows } = await sql<{ busy: boolean }>`
          select exists (select from jobs) or exists (select from crypto_orders where look_at <= now())
            or exists (select from card_checkouts where look_at <= now()) as busy`.execute(db.sql);
        return rows[0]?.busy === false;
      };
      if (!(await waitUntil(isQuiet, { timeout: 600_000, every: 250 }))) throw new Error("work is never done");
    },
    async [Symbol.asyncDispose]() {
      await db.close();
      await deployment[Symbol.asyncDispose]();
      await processor[Symbol.asyncDispose]();
    },
  };
}
