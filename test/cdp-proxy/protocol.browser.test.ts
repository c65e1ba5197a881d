import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { findBrowsers, realDisk } from "../../src/platform/browsers/browser-paths.ts";
import { browserMayKnowMore } from "../../workers/cdp-proxy/command-policy.ts";
import { readProtocol } from "../support/browser-protocol.ts";
import { outcomeOf } from "./policy-outcome.ts";

const { env, platform } = process;
const installed = Object.entries(findBrowsers({ env, platform, dataDirectory: tmpdir(), disk: realDisk }));

test.each(installed)("the policy covers every method of the installed %s", async (_runtime, executable) => {
  const { version, methods } = await readProtocol(executable);
  expect(methods.length).toBeGreaterThan(500);
  // If this fails, add the methods to workers/cdp-proxy/policy-table.ts: forwarded, or refused with a reason.
  expect(methods.filter((method) => outcomeOf(method) === "unlisted")).toEqual([]);
  // If this fails, set coveredChromium to this version.
  expect(browserMayKnowMore(`${version}.`)).toBe(false);
});
