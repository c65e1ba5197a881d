import { floodTests } from "./flood.ts";

// A tenth of test/gateway/flood.long.test.ts.
floodTests({ requests: 300, messages: 40, keys: 900 });
