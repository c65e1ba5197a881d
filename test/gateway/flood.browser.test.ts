import { floodTests } from "./flood.ts";

// Tenth of the size of flood.long.test.ts.
floodTests({ requests: 300, messages: 40, keys: 900 });
