import type { Feature } from "../kernel/feature.ts";
import type { Database } from "../platform/postgres/database.ts";
import type { Status } from "../status/status.ts";
import { countLaunchers } from "./store.ts";

export const fleet: Feature<{ readonly db: Database; readonly status: Status }> = {
  create({ db, status: { sources } }) {
    sources.watch({
      component: "sessions",
      async check() {
        const { workers, failing, hasBegun } = await countLaunchers(db);
        // Before the first worker registers, sessions were never available: no outage.
        if (!hasBegun) return undefined;
        if (failing === workers) return "major_outage";
        return failing > 0 ? "partial_outage" : "operational";
      },
    });
    return {};
  },
};
