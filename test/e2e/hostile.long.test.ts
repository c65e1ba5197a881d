import { hostileCases } from "../support/hostile-cases.ts";
import { hostileTests } from "../support/hostile-tests.ts";

hostileTests({ chromium: hostileCases });
