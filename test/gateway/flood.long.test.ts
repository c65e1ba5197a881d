import { startService } from "../support/service.ts";
import { floodTests } from "./flood.ts";

floodTests({ requests: 3_000, messages: 1_000, keys: 900 }, startService);
