import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { QuotaUsage } from "../../../src/gen/pilothouse/v1/account_pb.ts";
import { bytesText } from "../../ui/bytes.ts";
import { Meter } from "../../ui/meter.tsx";

const titles: Readonly<Record<string, string>> = {
  session_minutes: "Session minutes this month",
  concurrent_sessions: "Sessions at once",
  profiles: "Profiles",
  profile_storage_bytes: "Profile storage",
  api_keys: "API keys",
};

const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });

/** Usage against the limits of the tier. */
export function QuotaMeters({ quotas }: { readonly quotas: readonly QuotaUsage[] }) {
  return (
    <div className="grid gap-x-8 gap-y-5 sm:grid-cols-2">
      {quotas.map(({ quota, used, limit, resetsAt }) => (
        <Meter
          key={quota}
          label={titles[quota] ?? quota}
          used={Number(used)}
          limit={limit === undefined ? undefined : Number(limit)}
          {...(quota === "profile_storage_bytes" && {
            format: (value: number) => bytesText(BigInt(Math.round(value))),
          })}
          {...(resetsAt && { note: `Starts again on ${day.format(timestampMs(resetsAt))}` })}
        />
      ))}
    </div>
  );
}
