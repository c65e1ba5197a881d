import { timestampMs } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@connectrpc/connect-query";
import { useState } from "react";
import { LimitsService, type RateLimitBucket, type UsageDay } from "../../../src/gen/pilothouse/v1/limits_pb.ts";
import { useMe } from "../../api/me.ts";
import { Badge } from "../../ui/badge.tsx";
import { Card } from "../../ui/card.tsx";
import { classes } from "../../ui/classes.ts";
import { Page } from "../../ui/page.tsx";
import { Loaded } from "../../ui/state.tsx";
import { Table } from "../../ui/table.tsx";
import { durationText } from "../../ui/time.tsx";
import { tierName } from "../billing/tier-words.ts";
import { QuotaMeters } from "./quota-meters.tsx";

/** Number of months to choose from. */
const shownMonths = 6;

function lastMonths(): { value: string; title: string }[] {
  const format = new Intl.DateTimeFormat(undefined, { month: "long", year: "numeric", timeZone: "UTC" });
  const now = new Date();
  return Array.from({ length: shownMonths }, (_, index) => {
    const month = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - index, 1));
    return { value: month.toISOString().slice(0, 7), title: format.format(month) };
  });
}

export function UsagePage() {
  const [months] = useState(lastMonths);
  const [month, setMonth] = useState(months[0]?.value ?? "");
  const me = useMe();
  const usage = useQuery(LimitsService.method.getUsage, { month });
  const limits = useQuery(LimitsService.method.getRateLimits, {});
  return (
    <Page
      title="Usage"
      about={me.data?.account && `What the account uses of the plan ${tierName(me.data.account.tier)}.`}
    >
      <Card title="Limits">
        <Loaded query={me}>{({ account }) => <QuotaMeters quotas={account?.quotas ?? []} />}</Loaded>
      </Card>
      <Card
        title="Session time by day"
        actions={
          <select
            aria-label="Month"
            value={month}
            onChange={({ target }) => setMonth(target.value)}
            className="h-8 rounded-lg border border-line-strong bg-surface px-2 text-sm"
          >
            {months.map(({ value, title }) => (
              <option key={value} value={value}>
                {title}
              </option>
            ))}
          </select>
        }
      >
        <Loaded query={usage}>{({ days }) => <DayChart days={days} />}</Loaded>
      </Card>
      <Card title="Rate limits" about="Requests beyond a bucket are refused until it fills again." isFlush>
        <Loaded query={limits}>{({ buckets }) => <BucketTable buckets={buckets} />}</Loaded>
      </Card>
    </Page>
  );
}

const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", timeZone: "UTC" });

function DayChart({ days }: { readonly days: readonly UsageDay[] }) {
  const highest = Math.max(60, ...days.map(({ sessionSeconds }) => Number(sessionSeconds)));
  const total = days.reduce((sum, { sessionSeconds }) => sum + Number(sessionSeconds), 0);
  const count = days.reduce((sum, { sessions }) => sum + sessions, 0);
  return (
    <figure>
      <figcaption className="mb-4 text-sm text-soft">
        {durationText(total)} in {count.toLocaleString()} {count === 1 ? "session" : "sessions"}
      </figcaption>
      <ol className="flex h-36 items-end gap-1">
        {days.map(({ date, sessionSeconds, sessions }) => {
          const text = `${day.format(Date.parse(date))}: ${durationText(Number(sessionSeconds))}, ${sessions} sessions`;
          return (
            <li key={date} className="group relative flex h-full min-w-0 max-w-10 flex-1 items-end" title={text}>
              <span className="sr-only">{text}</span>
              <span
                aria-hidden="true"
                className={classes(
                  "w-full rounded-t-[3px]",
                  sessions > 0 || sessionSeconds > 0
                    ? "bg-accent opacity-85 group-hover:opacity-100"
                    : "bg-line-strong",
                )}
                style={{ height: `max(2px, ${(Number(sessionSeconds) / highest) * 100}%)` }}
              />
            </li>
          );
        })}
      </ol>
      <div className="mt-2 flex justify-between border-t border-line pt-2 text-xs text-faint" aria-hidden="true">
        <span>{days[0] && day.format(Date.parse(days[0].date))}</span>
        <span>{days.length > 1 && day.format(Date.parse(days.at(-1)?.date ?? ""))}</span>
      </div>
    </figure>
  );
}

function BucketTable({ buckets }: { readonly buckets: readonly RateLimitBucket[] }) {
  return (
    <Table
      label="Rate limits"
      rows={buckets}
      keyOf={({ name }) => name}
      columns={[
        {
          title: "Bucket",
          cell: ({ name, override }) => (
            <span className="flex flex-wrap items-center gap-2">
              <code className="font-mono text-xs break-all">{name}</code>
              {override?.expiresAt && (
                <Badge tone="accent">Raised until {new Date(timestampMs(override.expiresAt)).toLocaleString()}</Badge>
              )}
            </span>
          ),
        },
        { title: "At once", isRight: true, cell: ({ capacity }) => capacity.toLocaleString() },
        {
          title: "Per minute",
          from: "sm",
          isRight: true,
          cell: ({ refillPerMinute }) => refillPerMinute.toLocaleString(),
        },
        { title: "Left", isRight: true, cell: ({ remaining }) => remaining.toLocaleString() },
      ]}
    />
  );
}
