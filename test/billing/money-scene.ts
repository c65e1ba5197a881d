import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { sql } from "kysely";
import { Registry } from "prom-client";
import { insertAccount } from "../../src/accounts/store.ts";
import { createAuditLog } from "../../src/audit/audit-log.ts";
import { billing } from "../../src/billing/feature.ts";
import { cryptoOrders } from "../../src/billing/order-feature.ts";
import type { OrderOperatorParts } from "../../src/billing/order-operator.ts";
import { createProcessors, type Processors } from "../../src/billing/processors.ts";
import type { PaymentSandbox } from "../../src/billing/sandbox/sandbox.ts";
import { createEventLog } from "../../src/events/event-log.ts";
import type { JobQueues } from "../../src/jobs/job-queues.ts";
import type { Call } from "../../src/kernel/call.ts";
import type { CreatedFeature } from "../../src/kernel/feature.ts";
import { type Arrangements, createArrangements } from "../../src/limits/arrangements.ts";
import { createLimits } from "../../src/limits/limits.ts";
import type { Mail } from "../../src/mail/mail.ts";
import { createLocalBus } from "../../src/platform/bus.ts";
import { readConfig } from "../../src/platform/config.ts";
import { Failure } from "../../src/platform/errors.ts";
import { createIds } from "../../src/platform/ids.ts";
import type { Database } from "../../src/platform/postgres/database.ts";
import { findDueTasks } from "../../src/platform/postgres/due-tasks.ts";
import { createSources } from "../../src/status/sources.ts";
import { clockAt } from "../support/clock-at.ts";
import { silentLog, startTestDatabase } from "../support/database.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests look into messages of every method.
type Answer = any;

/** The billing services on PostgreSQL and the sandbox, without a gateway. The test controls clock and jobs. */
export interface MoneyScene extends AsyncDisposable {
  readonly db: Database;
  readonly sandbox: PaymentSandbox;
  readonly arrangements: Arrangements;
  readonly operator: OrderOperatorParts;
  readonly mails: readonly Mail[];
  now(): number;
  /** Advances the clock, then runs everything that is due. */
  pass(milliseconds: number): Promise<void>;
  /** Runs the queued jobs in order. */
  work(): Promise<void>;
  /** Creates an account and deletes all others. */
  newAccount(): Promise<string>;
  /** Calls a method for an account. Returns the slug of the problem, or "". */
  call(accountId: string, method: string, request: object): Promise<{ slug: string; answer: Answer }>;
  /** Discards the notices sent during `run`. */
  losing<T>(run: () => Promise<T>): Promise<T>;
}

export async function startMoneyScene(from: number): Promise<MoneyScene> {
  const database = await startTestDatabase();
  const { db } = database;
  let at = from;
  const clock = clockAt(() => at);
  const [ids, bus, log, metrics] = [createIds(clock), createLocalBus(), silentLog, new Registry()];
  const config = readConfig({ DATA_DIR: "/nowhere" });
  const [audit, arrangements] = [createAuditLog({ db, ids, bus }), createArrangements({ clock, bus })];
  const mails: Mail[] = [];
  let isLosing = false;
  const made = createProcessors({ config, db, clock });
  const processors: Processors = {
    ...made,
    onWebhook: (name, receive) => made.onWebhook(name, async (notice) => isLosing || (await receive(notice))),
  };
  const { sandbox } = made;
  if (!sandbox) throw new Error("there is no sandbox");
  const jobs: { kind: string; queue: string; data: unknown }[] = [];
  const enqueueAll: JobQueues["enqueueAll"] = (tx, { kind }, added) =>
    tx.afterCommit(() => void jobs.push(...added.map(({ queue, data }) => ({ kind, queue, data }))));
  // Implements only the used parts of the jobs and the mailer.
  const jobQueues = { enqueueAll, enqueue: (tx, kind, job) => enqueueAll(tx, kind, [job]) } as JobQueues;
  const mailer = {
    send: async (tx: Parameters<JobQueues["enqueue"]>[0], mail: Mail) => tx.afterCommit(() => void mails.push(mail)),
  };
  const events = createEventLog({ db, bus, ids, clock, log });
  const shared = {
    db,
    config,
    clock,
    log,
    metrics,
    events,
    audit,
    arrangements,
    processors,
    jobQueues,
    limits: createLimits(clock),
    status: { sources: createSources() },
  };
  const parts = { ...shared, mailer: mailer as never };
  const features: CreatedFeature[] = [billing, cryptoOrders].flatMap(({ create }) => create?.(parts as never) ?? []);
  const methods = features.flatMap(({ served }) => served?.methods ?? []);

  async function doWork(): Promise<void> {
    for (let job = jobs.shift(); job; job = jobs.shift()) {
      const { kind, queue, data } = job;
      const kinds = features.flatMap((feature) => feature.jobKinds ?? []);
      const found = kinds.find((each) => each.kind === kind);
      if (!found) throw new Error(`no feature runs jobs of kind ${kind}`);
      await found.run({ id: "", queue, data, attempt: 1 }, AbortSignal.timeout(60_000));
    }
  }

  const callOf = (accountId: string): Call =>
    // Implements only the parts of a call that billing methods use.
    ({
      principal: { accountId } as Call["principal"],
      ids,
      resumes: false,
      markUnchanged() {},
      audit: () => "",
      async commit(run) {
        return db.transaction(async (tx) => {
          const answer = await run(tx);
          if (answer instanceof Failure) throw answer;
          return answer;
        });
      },
    }) as Partial<Call> as Call;

  return {
    db,
    sandbox,
    arrangements,
    mails,
    operator: { clock, audit, arrangements },
    now: clock.now,
    work: doWork,
    async pass(milliseconds) {
      at += milliseconds;
      for (const { run } of features.flatMap((feature) => feature.jobs ?? [])) await run();
      const dueTasks = features.flatMap((feature) => feature.dueTasks ?? []);
      for (const { run } of await findDueTasks(db, dueTasks)) await run();
      await doWork();
    },
    async newAccount() {
      // Leftover accounts would be looked up again with each day that passes.
      await sql`truncate accounts cascade`.execute(db.sql);
      await sql`delete from sandbox_things where kind in ('subscription', 'charge', 'btc_invoice')`.execute(db.sql);
      const id = ids.next("acc");
      await db.transaction((tx) => insertAccount(tx, { id, name: "Ada", tier: "free" }));
      return id;
    },
    async call(accountId, name, request) {
      const found = methods.find(({ method }) => method.localName === name);
      if (found?.kind !== "unary") throw new Error(`there is no method ${name}`);
      const input = create(found.method.input, request as MessageInitShape<DescMessage>);
      try {
        const answer = await (found.run as (call: Call, input: unknown) => Promise<Answer>)(callOf(accountId), input);
        await doWork();
        return { slug: "", answer };
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        return { slug: error.slug, answer: undefined };
      }
    },
    async losing(run) {
      isLosing = true;
      try {
        return await run();
      } finally {
        isLosing = false;
      }
    },
    async [Symbol.asyncDispose]() {
      await database[Symbol.asyncDispose]();
    },
  };
}
