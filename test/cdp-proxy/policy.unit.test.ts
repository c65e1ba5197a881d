import { expect, test } from "vitest";
import { cdpProxyTotals, countUnlisted } from "../../workers/cdp-proxy/cdp-proxy-totals.ts";
import { browserMayKnowMore } from "../../workers/cdp-proxy/command-policy.ts";
import { coveredChromium, domains } from "../../workers/cdp-proxy/policy-table.ts";
import { clientNames, methodsOf } from "./client-methods.ts";
import { outcomeOf } from "./policy-outcome.ts";

/** Methods of clients that the policy refuses intentionally. */
const refusedOnPurpose = /^(Extensions|PWA)\.|^Target\.openDevTools$|^SystemInfo\.getProcessInfo$/;

test.each(clientNames)("the policy allows the methods that %s sends", (client) => {
  const stopped = methodsOf(client).filter((name) => ["refuse", "unlisted"].includes(outcomeOf(name)));
  expect(stopped.filter((name) => !refusedOnPurpose.test(name))).toEqual([]);
});

test("the policy lists no method twice", () => {
  for (const [domain, policy] of Object.entries(domains)) {
    if (typeof policy === "string") continue;
    const { reads = "", passes = "", readRules = {}, passRules = {}, refuses = {} } = policy;
    const lists = [reads, passes, ...Object.values(refuses)].join(" ").trim().split(/\s+/);
    const names = [...lists, ...Object.keys(readRules), ...Object.keys(passRules)].filter((name) => name !== "");
    expect([...new Set(names)], domain).toEqual(names);
  }
});

test.each([
  "Page.madeUp",
  "MadeUp.enable",
  "Page",
  "",
  ".",
  "Page.",
  "constructor",
  "__proto__.enable",
  "Page.enable ",
])("the method %j, which has no policy entry, is not forwarded", (method) => {
  expect(outcomeOf(method)).toBe("unlisted");
});

test("counts methods without a policy entry by name in newer browsers, and invented names together", () => {
  expect(browserMayKnowMore(`${coveredChromium}.0.8078.79`)).toBe(false);
  expect(browserMayKnowMore(`${coveredChromium + 1}.0.1.1`)).toBe(true);
  cdpProxyTotals.unlisted.clear();
  countUnlisted("Page.newInThatVersion", false);
  expect([...cdpProxyTotals.unlisted]).toEqual([["other", 1]]);
  countUnlisted("Page.newInThatVersion", true);
  for (let index = 0; index < 1_000; index += 1) countUnlisted(`Page.madeUp${"x".repeat(index % 50)}`, true);
  countUnlisted(`Page.${"long".repeat(100)}`, true);
  countUnlisted('Page.new"} 1\n', true);
  countUnlisted("Page.newInThatVersion", true);
  expect(cdpProxyTotals.unlisted.get("Page.newInThatVersion")).toBe(2);
  expect(cdpProxyTotals.unlisted.size).toBe(32);
  expect([...cdpProxyTotals.unlisted.values()].reduce((sum, count) => sum + count)).toBe(1_005);
  cdpProxyTotals.unlisted.clear();
});
