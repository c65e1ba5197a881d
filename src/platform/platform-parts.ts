import type { Registry } from "prom-client";
import type { Bus } from "./bus.ts";
import type { Clock } from "./clock.ts";
import type { Config } from "./config.ts";
import type { Ids } from "./ids.ts";
import type { Log } from "./log.ts";
import type { Database } from "./postgres/database.ts";
import type { Sealer } from "./secrets/secrets-sealer.ts";

/** Dependencies from src/platform that the parts of a process share. */
export interface PlatformParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly metrics: Registry;
  readonly db: Database;
  readonly bus: Bus;
  readonly sealer: Sealer;
}
