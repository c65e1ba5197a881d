import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Database, openDatabase } from "../../src/platform/postgres/database.ts";
import { silentLog } from "../support/database.ts";
import type { DeployedGateway, Deployment } from "../support/deployment.ts";
import { longDescribe, longTest } from "../support/long-test.ts";
import { type Rest, restClient } from "../support/rest.ts";

function span(from: string | undefined, to: string | undefined): number {
  return Date.parse(to ?? "") - Date.parse(from ?? "");
}

const utcDay = (): string => new Date().toISOString().slice(0, 10);

/** Limits of accounts at two gateways with a worker. */
export function scaledLimitTests(deploymentOf: () => Deployment): void {
  let deployment: Deployment;
  let db: Database;
  let one: DeployedGateway;
  let other: DeployedGateway;

  beforeAll(() => {
    deployment = deploymentOf();
    db = openDatabase({ url: deployment.postgres.url }, silentLog, 2);
    [one, other] = [deployment.gateway(0), deployment.gateway(1)];
  });
  afterAll(() => db?.close());

  /** Creates an account. Returns clients of both gateways with the account's key. */
  async function customer(account: string, tier: string): Promise<[Rest, Rest]> {
    const key = await deployment.createKey(account, tier);
    return [restClient({ url: one.url, key }), restClient({ url: other.url, key })];
  }

  const override = (account: string, limit: string, value: number, ...more: readonly string[]) =>
    deployment.admin(
      "override",
      "--account",
      account,
      "--limit",
      limit,
      "--value",
      String(value),
      ...(more.includes("--until") ? more : ["--until", "1h", ...more]),
    );

  /** Returns the events of an account. */
  async function quotaEvents(account: string) {
    const owned = db.sql.selectFrom("events").innerJoin("accounts", "accounts.id", "events.subject");
    const rows = await owned
      .select(["type", "data"])
      .where("accounts.name", "=", account)
      .orderBy("position")
      .execute();
    return rows.map(({ type, data }): Record<string, unknown> => ({ type, ...data }));
  }

  async function bucketOf(rest: Rest, name: string) {
    const { status, body } = await rest("/v1/account/rate-limits");
    expect(status).toBe(200);
    return body.buckets.find((bucket: { name: string }) => bucket.name === name);
  }

  describe("rate limits", () => {
    test("are those of the tier, shared across gateways", async () => {
      const [here, there] = await customer("Plain", "free");
      const { body } = await here("/v1/account/rate-limits");
      const sizes = body.buckets.map((bucket: Record<string, unknown>) => [
        bucket.name,
        bucket.capacity,
        bucket.refill_per_minute,
        bucket.override,
      ]);
      expect([body.tier, sizes]).toEqual([
        "free",
        [
          ["global", 60, 60, null],
          ["sessions:create", 5, 1, null],
          ["agent_sessions:message", 20, 12, null],
          ["agent_sessions:input_event", 240, 3_600, null],
        ],
      ]);
      const { body: session } = await here("/v1/sessions", {});
      expect(session.status).toBe("live");
      expect(await bucketOf(there, "sessions:create")).toMatchObject({ remaining: 4 });
      expect(Date.parse((await bucketOf(there, "sessions:create")).reset_at)).toBeGreaterThan(Date.now());
      await there(`/v1/sessions/${session.id}`, undefined, { method: "DELETE" });
    });

    longTest(
      "follow an operator override on every gateway within 5 s, and return to the tier when the override expires",
      async () => {
        const [here, there] = await customer("Arranged", "free");
        await Promise.all([here("/v1/sessions"), there("/v1/sessions")]);
        const bucket = ["--refill-per-minute", "6000", "--reason", "a trade fair"];
        await override("Arranged", "global", 500, ...bucket);
        const arranged = performance.now();
        for (const rest of [here, there]) {
          const limit = async () => (await rest("/v1/sessions")).headers.get("x-ratelimit-limit");
          await expect.poll(limit, { timeout: 5_000, interval: 50 }).toBe("500");
        }
        expect(performance.now() - arranged).toBeLessThan(5_000);
        expect(await bucketOf(there, "global")).toMatchObject({
          capacity: 500,
          refill_per_minute: 6_000,
          override: { reason: "a trade fair" },
        });
        // Expires in 6 s from now, regardless of the duration of the command and the checks above.
        const until = new Date(Date.now() + 6_000);
        const expiresAt = JSON.stringify(until);
        await sql`update accounts set overrides = jsonb_set(overrides, '{0,expiresAt}', ${expiresAt}::jsonb)
        where name = 'Arranged'`.execute(db.sql);
        for (const rest of [here, there])
          await expect
            .poll(() => bucketOf(rest, "global"), { timeout: 20_000, interval: 200 })
            .toMatchObject({ capacity: 60, refill_per_minute: 60, override: null });
        expect(Date.now()).toBeGreaterThanOrEqual(until.getTime());
      },
      60_000,
    );

    test("follow a tier change on every gateway, and a cached tier refuses no create", async () => {
      const [here, there] = await customer("Growing", "free");
      const create = (rest: Rest) => rest("/v1/sessions", { timeout_seconds: 3_000 });
      for (const rest of [here, there]) expect((await create(rest)).status).toBe(400);
      await deployment.admin("set-tier", "--account", "Growing", "--tier", "personal");
      for (const rest of [here, there]) expect((await create(rest)).status).toBe(201);
      const limit = async () => (await there("/v1/sessions")).headers.get("x-ratelimit-limit");
      await expect.poll(limit).toBe("120");
      await override("Growing", "concurrent_sessions", 2);
      expect((await create(here)).body).toMatchObject({ current_sessions: 2, limit: 2 });
      await deployment.admin("end-override", "--account", "Growing", "--limit", "concurrent_sessions");
      expect((await create(here)).status).toBe(201);
    }, 60_000);
  });

  longDescribe("session minutes", () => {
    test("end all sessions when used up together, and send each event once", async () => {
      const [here, there] = await customer("Metered", "api_builder");
      const created = await Promise.all(
        Array.from({ length: 10 }, (_, index) => (index % 2 ? here : there)("/v1/sessions", {})),
      );
      expect(created.map(({ status }) => status)).toEqual(Array(10).fill(201));
      await override("Metered", "session_minutes", 1);
      const ended = async () => (await here("/v1/sessions?status=destroyed")).body.data;
      await expect.poll(async () => (await ended()).length, { timeout: 30_000, interval: 100 }).toBe(10);
      const sessions: Record<string, string>[] = await ended();
      expect(new Set(sessions.map(({ ended_reason }) => ended_reason))).toEqual(new Set(["quota"]));
      const used = sessions.reduce((sum, { live_at, ended_at }) => sum + span(live_at, ended_at), 0);
      // Ten sessions use ten seconds per second.
      expect(used).toBeGreaterThanOrEqual(60_000);
      expect(used).toBeLessThan(160_000);
      const refused = await there("/v1/sessions", {});
      const resets = new Date(Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth() + 1)).toISOString();
      expect(refused.body).toMatchObject({ status: 429, quota: "session_minutes", limit: 1, resets_at: resets });
      expect(refused.body.type).toMatch(/\/tier-limit$/);
      expect(await quotaEvents("Metered")).toEqual([
        expect.objectContaining({
          type: "quota.warning_80pct",
          quota: "session_minutes",
          limit: 1,
          tier: "api_builder",
        }),
        expect.objectContaining({
          type: "quota.exceeded",
          used: Math.floor(used / 60_000),
          limit: 1,
          resets_at: resets,
        }),
      ]);
      const { body } = await here("/v1/account/usage");
      const total = (field: string) =>
        body.days.reduce((sum: number, day: Record<string, number>) => sum + (day[field] ?? 0), 0);
      expect([body.month, body.days.at(-1).date]).toEqual([utcDay().slice(0, 7), utcDay()]);
      // Seconds are rounded down per day, so up to two days lose a fraction around midnight.
      expect(Math.floor(used / 1_000) - total("session_seconds")).toBeLessThanOrEqual(1);
      expect(total("sessions")).toBe(10);
      // A higher limit applies immediately and has its own threshold events.
      await override("Metered", "session_minutes", 2);
      expect((await here("/v1/sessions", {})).status).toBe(201);
      await override("Metered", "session_minutes", 0);
      await expect.poll(async () => (await ended()).length, { timeout: 20_000, interval: 100 }).toBe(11);
      const told = (await quotaEvents("Metered")).map((event) => `${event.type} ${event.limit}`);
      expect(told.slice(2).toSorted()).toEqual([
        "quota.exceeded 0",
        "quota.warning_80pct 0",
        ...(used >= 96_000 ? ["quota.warning_80pct 2"] : []),
      ]);
    }, 90_000);
  });
}
