import { browserCases, hostileCases } from "../support/hostile-cases.ts";
import { hostileTests } from "../support/hostile-tests.ts";

// One engine is in both; hostile.long.test.ts runs all cases in Chromium.
hostileTests({ "headless-shell": hostileCases, chromium: browserCases });
