import { timestampMs } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@connectrpc/connect-query";
import { Link } from "@tanstack/react-router";
import { useEffect } from "react";
import { ProfileService } from "../../../src/gen/pilothouse/v1/profile_pb.ts";
import { type Session, SessionService, type SessionState } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { pagePaths } from "../../app/page-paths.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Card, Properties, Property } from "../../ui/card.tsx";
import { Loaded } from "../../ui/state.tsx";
import { Ago, DateOf, durationText, Until } from "../../ui/time.tsx";
import { isRunning, reasonText } from "./session-words.tsx";

/** Properties of a session that its create request determines, and its times. */
export function SessionFacts({ session }: { readonly session: Session }) {
  const profiles = useQuery(ProfileService.method.list, { limit: 100 }, { enabled: session.profileId !== undefined });
  const { archetype, runtime, viewport, profileId, proxy, labels, status } = session;
  const { createdAt, liveAt, endedAt, expiresAt, endedReason, idleTimeoutSeconds, locale, timezone } = session;
  const others = Object.entries(labels).filter(([name]) => name !== "name");
  return (
    <Properties>
      <Property name="Device">
        {archetype}
        {viewport && (
          <span className="text-faint">
            {" "}
            {viewport.width} × {viewport.height}
          </span>
        )}
      </Property>
      <Property name="Browser">{runtime}</Property>
      <Property name="Started">
        <Ago at={createdAt} />
      </Property>
      {isRunning(status) ? (
        <Property name="Ends">
          <Until at={expiresAt} />, or after {durationText(idleTimeoutSeconds)} without use
        </Property>
      ) : (
        <Property name="Ended">
          <Ago at={endedAt} />, {reasonText(endedReason)}
          {liveAt && endedAt && `, after ${durationText((timestampMs(endedAt) - timestampMs(liveAt)) / 1_000)}`}
        </Property>
      )}
      {(locale ?? timezone) !== undefined && (
        <Property name="Locale">{[locale, timezone].filter(Boolean).join(", ")}</Property>
      )}
      {(profileId !== undefined || isRunning(status)) && (
        <Property name="Profile">
          {profileId === undefined &&
            "None: logins are lost at the end. To keep them, start a session with a profile. "}
          <Link to={pagePaths.profiles} className="text-accent-text hover:underline">
            {profiles.data?.data.find(({ id }) => id === profileId)?.name ?? profileId ?? "Profiles"}
          </Link>
        </Property>
      )}
      {proxy && <Property name="Proxy">{proxy.server}</Property>}
      {others.length > 0 && (
        <Property name="Labels">
          <span className="flex flex-wrap gap-1.5">
            {others.map(([name, value]) => (
              <Badge key={name}>
                {name}: {value}
              </Badge>
            ))}
          </span>
        </Property>
      )}
      {!isRunning(status) && (
        <Property name="Date">
          <DateOf at={createdAt} />
        </Property>
      )}
    </Properties>
  );
}

const megabytes = (bytes: bigint): string => `${(Number(bytes) / 1_000_000).toFixed(1)} MB`;

export interface StateTabProps {
  readonly session: Session;
  /** When the session was read, in milliseconds since 1970. */
  readonly readAt: number;
  /** Reads the session again. */
  readonly onRefresh: () => unknown;
}

/**
 * Properties and current state: pages, control, traffic. The state is read after each read of the session, because the
 * service does not return the state of an ended session.
 */
export function StateTab({ session, readAt, onRefresh }: StateTabProps) {
  // Disabled queries are read only by `refetch`, not when the data of their service changes.
  const state = useQuery(SessionService.method.getState, { id: session.id }, { enabled: false });
  const { refetch } = state;
  // biome-ignore lint/correctness/useExhaustiveDependencies: reads the state after each read of the session
  useEffect(() => void refetch(), [readAt, refetch]);
  return (
    <div className="grid items-start gap-5 lg:grid-cols-2">
      <Card title="About the session">
        <SessionFacts session={session} />
      </Card>
      <Card
        title="At the moment"
        actions={
          <Button size="small" isPending={state.isFetching} onClick={() => onRefresh()}>
            Refresh
          </Button>
        }
      >
        <Loaded query={state}>{(data) => <StateFacts state={data} />}</Loaded>
      </Card>
    </div>
  );
}

/** Texts for the states in which a person or an agent has control. */
const holders: Readonly<Record<string, string>> = {
  human_control: "A person has control",
  agent_control: "The agent has control",
};

function StateFacts({ state }: { readonly state: SessionState }) {
  const { pages, control, egress, challenge, pauseReason } = state;
  return (
    <Properties>
      {pauseReason !== undefined && <Property name="Paused">{pauseReason}</Property>}
      {challenge && <Property name="Bot check">{`${challenge.kind} at ${challenge.url}`}</Property>}
      <Property name="Tabs">
        <ul className="flex flex-col gap-1.5">
          {pages.map(({ id, title, url, active }) => (
            <li key={id} className="min-w-0">
              <span className="flex items-center gap-2">
                <span className="min-w-0 truncate">{title || "Untitled"}</span>
                {active && <Badge tone="accent">Shown</Badge>}
              </span>
              <span className="block truncate text-xs text-faint">{url}</span>
            </li>
          ))}
        </ul>
      </Property>
      <Property name="Control">{holders[control?.state ?? ""] ?? "Nobody is in control"}</Property>
      {egress && (
        <Property name="Traffic">
          {megabytes(egress.bytesSent)} sent, {megabytes(egress.bytesReceived)} received
        </Property>
      )}
    </Properties>
  );
}
