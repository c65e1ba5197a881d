import { floodTests } from "./flood.ts";

// A tenth of test/gateway/flood.long.test.ts, which waits for the end of it all, too.
floodTests({ requests: 300, messages: 40, keys: 20_000, waitsForEnd: false });
