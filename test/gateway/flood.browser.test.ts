import { borrowService } from "../support/warm-service.ts";
import { floodTests } from "./flood.ts";

// Tenth of the size of flood.long.test.ts.
floodTests({ requests: 300, messages: 40, keys: 900 }, async () => {
  const { service, site } = await borrowService();
  await site.stop();
  return service;
});
