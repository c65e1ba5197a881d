import { timestampMs } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@connectrpc/connect-query";
import { Link, useParams } from "@tanstack/react-router";
import { CircleStop, SquareTerminal } from "lucide-react";
import { SessionLogLevel } from "../../../src/gen/pilothouse/v1/session_log_pb.ts";
import { type Session, SessionService, SessionStatus } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { problemOf } from "../../api/problem.ts";
import { useChange } from "../../api/queries.ts";
import { pagePaths } from "../../app/page-paths.ts";
import { Button, buttonClass } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Id } from "../../ui/copy.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { Page } from "../../ui/page.tsx";
import { Loaded, Loading } from "../../ui/state.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { CaptureTab } from "./capture-tab.tsx";
import { ConnectTab } from "./connect-tab.tsx";
import { EventsTab } from "./events-tab.tsx";
import { ExtendSession } from "./extend-session.tsx";
import { SessionFacts, StateTab, type StateTabProps } from "./facts-tab.tsx";
import { FilesTab, KeptFiles } from "./files-tab.tsx";
import { LinksTab } from "./links-tab.tsx";
import { LiveView } from "./live-view.tsx";
import { LogTab } from "./log-tab.tsx";
import { isRunning, SessionBadge, titleOf } from "./session-words.tsx";

export function SessionPage() {
  const { id } = useParams({ from: "/inside/sessions/$id" });
  const session = useQuery(
    SessionService.method.get,
    { id, includeEnded: true },
    {
      retry: (count, error) => count < 2 && ["offline", "internal"].includes(problemOf(error).slug),
    },
  );
  return (
    <Loaded query={session} lines={8}>
      {(data) =>
        isRunning(data.status) ? (
          <RunningSession session={data} readAt={session.dataUpdatedAt} onRefresh={session.refetch} />
        ) : (
          <SessionRecord session={data} />
        )
      }
    </Loaded>
  );
}

function Heading({ session }: { readonly session: Session }) {
  return (
    <>
      <span className="min-w-0 truncate">{titleOf(session)}</span>
      <SessionBadge status={session.status} />
    </>
  );
}

function RunningSession(state: StateTabProps) {
  const { session } = state;
  const { id, status } = session;
  const destroy = useChange(SessionService.method.destroy, { changes: [SessionService] });
  const end = (
    <Confirm
      trigger={
        <Button kind="danger">
          <CircleStop size={15} aria-hidden="true" />
          End
        </Button>
      }
      title="End the session?"
      action="End the session"
      onConfirm={() => destroy.runAsync({ id })}
      problem={destroy.problem}
    >
      Its browser closes, and its files are deleted.{session.profileId !== undefined && " Its profile is saved first."}
    </Confirm>
  );
  return (
    <Page
      title={titleOf(session)}
      heading={<Heading session={session} />}
      about={<Id value={id} />}
      actions={
        <>
          {session.liveAt && (
            <>
              <Link to={pagePaths.playground} params={{ id }} className={buttonClass()}>
                <SquareTerminal size={15} aria-hidden="true" />
                Playground
              </Link>
              <ExtendSession session={session} />
            </>
          )}
          {end}
        </>
      }
    >
      {status === SessionStatus.PROVISIONING ? (
        <Card>
          <Loading />
        </Card>
      ) : (
        <LiveView sessionId={id} className="h-[min(70dvh,46rem)] min-h-[26rem]" />
      )}
      <Tabs
        label="About the session"
        items={[
          { id: "state", title: "State", content: () => <StateTab {...state} /> },
          { id: "connect", title: "Connect", content: () => <ConnectTab sessionId={id} /> },
          { id: "links", title: "View links", content: () => <LinksTab sessionId={id} /> },
          { id: "files", title: "Files", content: () => <FilesTab sessionId={id} /> },
          { id: "capture", title: "Capture", content: () => <CaptureTab sessionId={id} /> },
          { id: "events", title: "Events", content: () => <EventsTab sessionId={id} /> },
          { id: "log", title: "Log", content: () => <LogTab sessionId={id} isRunning /> },
        ]}
      />
    </Page>
  );
}

/** Milliseconds for which the files of an ended session are listed. */
const filesKeptMs = 7 * 86_400_000;

/** Returns whether the service lists the files of an ended session. It keeps the list with the log. */
function hasKeptFiles({ logs, liveAt, endedAt }: Session): boolean {
  if (!liveAt || !endedAt || Date.now() > timestampMs(endedAt) + filesKeptMs) return false;
  return logs === SessionLogLevel.ERRORS || logs === SessionLogLevel.FULL;
}

function SessionRecord({ session }: { readonly session: Session }) {
  return (
    <Page title={titleOf(session)} heading={<Heading session={session} />} about={<Id value={session.id} />}>
      <Card title="About the session">
        <SessionFacts session={session} />
      </Card>
      {hasKeptFiles(session) && <KeptFiles sessionId={session.id} />}
      <LogTab sessionId={session.id} isRunning={false} />
    </Page>
  );
}
