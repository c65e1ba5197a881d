import { expect, test } from "vitest";
import { isAbove } from "../../src/identity/api-keys/grants.ts";
import { scopesOfRole } from "../../src/identity/api-keys/scopes.ts";
import type { Role } from "../../src/kernel/role.ts";
import { createLimits } from "../../src/limits/limits.ts";
import { tiers } from "../../src/limits/tiers.ts";
import { systemClock } from "../../src/platform/clock.ts";

// A later release may store names that this release does not know.
const unknown = "auditor" as Role;

test("an unknown role has the scopes of a member, and cannot be granted", () => {
  expect(scopesOfRole(unknown)).toEqual(scopesOfRole("member"));
  expect(isAbove(unknown, "owner")).toBe(true);
  expect(isAbove("admin", unknown)).toBe(true);
});

test("an unknown tier has the limits of the free tier", () => {
  const limits = createLimits(systemClock);
  expect(limits.of({ tier: "galactic", overrides: [] })).toEqual(tiers.get("free"));
  expect(() => tiers.get("galactic")).toThrow("galactic");
});
