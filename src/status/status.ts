import type { Throttles } from "../identity/throttle.ts";
import type { JobQueues } from "../jobs/job-queues.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { Part } from "../platform/lifetime.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { countResponses } from "./answers.ts";
import { createFeed, type Feed } from "./feed.ts";
import { createHistory, type History } from "./history.ts";
import { createIncidentMails } from "./incident-mails.ts";
import { type Pace, paceOf } from "./judgement.ts";
import { createSampler } from "./sampler.ts";
import { type MonthReport, monthsUntil, reportMonths } from "./sla.ts";
import { createSources, type Sources } from "./sources.ts";
import { readSpans } from "./store.ts";
import { createSubscriptions, type Subscriptions } from "./subscriptions.ts";

/** Current and past status of the service. */
export interface Status extends Part {
  /** Probes and counters, to which features add their dependencies. */
  readonly sources: Sources;
  /** Counts the result of a service call. */
  readonly countResponse: ReturnType<typeof countResponses>;
  readonly feed: Feed;
  readonly history: History;
  readonly subscriptions: Subscriptions;
  /** Reports the latest months, newest first. */
  reportSla(months: number): Promise<MonthReport[]>;
  /** E-mails to subscribers about incidents. */
  readonly mails: ReturnType<typeof createIncidentMails>;
  readonly pace: Pace;
}

export interface StatusParts extends PlatformParts {
  readonly jobQueues: JobQueues;
  readonly mailer: Mailer;
  readonly throttles: Throttles;
}

/** Creates the status of a gateway. `every`: sampling interval in milliseconds. Default: 10 s. */
export function createStatus(parts: StatusParts, every?: number): Status {
  const { config, db, clock } = parts;
  const pace = paceOf(every);
  const sources = createSources();
  const feed = createFeed();
  const takesPayments = config.embedded || config.stripe !== undefined || config.btcPay !== undefined;
  // In embedded mode, the machine may be off at night. That is not an outage.
  const sampler = createSampler({ ...parts, sources, feed, pace, countsAbsence: !config.embedded });
  sources.watch({
    component: "api",
    async check() {
      await db.named({ name: "status-probe", text: "select 1" }, []);
      return "operational";
    },
  });
  return {
    sources,
    feed,
    pace,
    countResponse: countResponses(sources, takesPayments),
    history: createHistory({ db, clock, feed }),
    subscriptions: createSubscriptions(parts),
    mails: createIncidentMails({ ...parts, publicUrl: config.publicUrl }),
    async reportSla(count) {
      const now = clock.now();
      const months = monthsUntil(now, count);
      const spans = await readSpans(db, new Date(months.at(-1)?.from ?? now), new Date(now));
      return reportMonths(spans, months);
    },
    ...sampler,
  };
}
