import { describe, expect, test } from "vitest";
import { addMonths, advance, endGrant, type PaidGrant, type PaidTime } from "../../src/limits/paid-time.ts";
import type { TierName } from "../../src/limits/tiers.ts";

const at = (text: string): number => Date.parse(`${text}T00:00:00Z`);
const fresh = { leftMs: null, runningSince: null, until: null, endedAt: null } as const;
const block = (id: string, tier: TierName, months: number, createdAt: number): PaidGrant => ({
  id,
  kind: "block",
  tier,
  months,
  createdAt,
  ...fresh,
});

test.each([
  ["2026-01-31", 1, "2026-02-28"],
  ["2028-01-31", 1, "2028-02-29"],
  ["2026-12-31", 2, "2027-02-28"],
  ["2026-03-31", 1, "2026-04-30"],
  ["2026-11-23", 12, "2027-11-23"],
])("%s plus %i months is %s", (from, months, to) => {
  expect(addMonths(at(from), months)).toBe(at(to));
});

describe("blocks of months", () => {
  test("run for the highest tier, while the others keep their remaining time", () => {
    const start = at("2026-01-31");
    let time = advance({ arranged: "free", grants: [block("a", "personal", 1, start)] }, start);
    expect(time.tier).toBe("personal");
    const later = at("2026-02-10");
    const until = advance(time, later);
    time = advance({ ...until, grants: [...until.grants, block("b", "api_builder", 1, later)] }, later);
    expect(time.tier).toBe("api_builder");
    expect(time.grants.find(({ id }) => id === "a")).toMatchObject({
      runningSince: null,
      leftMs: at("2026-02-28") - later,
    });
    time = advance(time, at("2026-03-11"));
    expect(time.tier).toBe("personal");
    expect(advance(time, at("2026-03-10") + at("2026-02-28") - later - 1).tier).toBe("personal");
    expect(advance(time, at("2026-03-10") + at("2026-02-28") - later).tier).toBe("free");
  });

  test("run one at a time in random sequences, regardless of how often they are advanced, and all end", () => {
    let seed = 7;
    const random = (below: number): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % below;
    };
    const tiers: readonly TierName[] = ["personal", "api_builder", "api_scale"];
    for (let run = 0; run < 200; run += 1) {
      let now = at("2026-01-01") + random(365) * 86_400_000;
      let time: PaidTime = { arranged: "free", grants: [] };
      const step = (to: number): void => {
        // The result must not depend on the number of steps.
        const once = advance(time, to);
        const often = advance(advance(time, now + Math.floor((to - now) / 2)), to);
        expect(often).toEqual(once);
        time = once;
        now = to;
      };
      for (let move = 0; move < 12; move += 1) {
        step(now + random(40) * 86_400_000 + random(1_000));
        const id = `${run}-${move}`;
        const tier = tiers[random(3)] ?? "personal";
        const action = random(5);
        if (action < 3) time = advance({ ...time, grants: [...time.grants, block(id, tier, 1 + random(3), now)] }, now);
        if (action === 3) time = advance({ ...time, arranged: random(2) === 0 ? "free" : "api_builder" }, now);
        const some = time.grants[random(Math.max(1, time.grants.length))];
        if (action === 4 && some?.endedAt === null) {
          time = advance(endGrant(time, some.id, now), now);
        }
      }
      expect(time.grants.filter(({ runningSince }) => runningSince !== null).length).toBeLessThanOrEqual(1);
      step(now + 20 * 366 * 86_400_000);
      time = advance({ ...time, arranged: "free" }, now);
      step(now + 20 * 366 * 86_400_000);
      for (const grant of time.grants) expect([grant.id, grant.endedAt !== null]).toEqual([grant.id, true]);
      expect(advance(time, now).tier).toBe("free");
    }
  });
});
