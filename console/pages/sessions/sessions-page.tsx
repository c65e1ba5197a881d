import { useQueryClient } from "@tanstack/react-query";
import { CircleStop, MonitorPlay, Plus } from "lucide-react";
import { useState } from "react";
import { type Session, SessionService, SessionStatus } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { useList } from "../../api/lists.ts";
import { type ApiProblem, problemOf } from "../../api/problem.ts";
import { keyOf, useChange } from "../../api/queries.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { List } from "../../ui/list.tsx";
import { Page } from "../../ui/page.tsx";
import { Segments } from "../../ui/segments.tsx";
import { EmptyState } from "../../ui/state.tsx";
import type { Column } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { NewSession } from "./new-session.tsx";
import { SessionLink } from "./session-link.tsx";
import { isRunning, reasonText, SessionBadge } from "./session-words.tsx";
import { Thumbnail, type ThumbnailUrls, useThumbnails } from "./thumbnails.tsx";

const filters = [
  ["all", "All", undefined],
  ["live", "Live", SessionStatus.LIVE],
  ["paused", "Paused", SessionStatus.PAUSED],
  ["ended", "Ended", SessionStatus.DESTROYED],
  ["failed", "Failed", SessionStatus.ERRORED],
] as const;

const columnsWith = (thumbnails: ThumbnailUrls): readonly Column<Session>[] => [
  {
    title: "Session",
    cell: (session) => (
      <span className="flex min-w-0 items-center gap-3">
        {isRunning(session.status) && (
          <span className="hidden w-20 shrink-0 sm:block">
            <Thumbnail url={thumbnails.get(session.id)} />
          </span>
        )}
        <SessionLink session={session} />
      </span>
    ),
  },
  {
    title: "Status",
    cell: ({ status, endedReason, pauseReason }) => (
      <span className="inline-flex flex-wrap items-center gap-x-2">
        <SessionBadge status={status} />
        <span className="hidden text-xs text-faint lg:inline">{pauseReason ?? reasonText(endedReason)}</span>
      </span>
    ),
  },
  {
    title: "Device",
    from: "sm",
    cell: ({ archetype }) => <span className="whitespace-nowrap text-soft">{archetype}</span>,
  },
  {
    title: "Browser",
    from: "lg",
    cell: ({ runtime }) => <span className="whitespace-nowrap text-soft">{runtime}</span>,
  },
  { title: "Started", isRight: true, cell: ({ createdAt }) => <Ago at={createdAt} /> },
];

/** Returns whether a request to end a session failed because the session had already ended. */
const hadEnded = (problem: ApiProblem | undefined): boolean => problem?.slug === "session-destroyed";

/** Ends all sessions that run, also those that the list does not show. */
function EndAll() {
  const client = useQueryClient();
  const read = useChange(SessionService.method.list);
  const destroy = useChange(SessionService.method.destroy);
  const endAll = async (): Promise<void> => {
    for (const status of [SessionStatus.PROVISIONING, SessionStatus.LIVE, SessionStatus.PAUSED]) {
      let hasMore = true;
      while (hasMore) {
        const page = await read.runAsync({ status, limit: 100 });
        for (const { id } of page.data)
          await destroy.runAsync({ id }).catch((error: unknown) => {
            if (!hadEnded(problemOf(error))) throw error;
          });
        hasMore = page.hasMore;
      }
    }
    await client.invalidateQueries({ queryKey: keyOf(SessionService) });
  };
  return (
    <Confirm
      trigger={
        <Button>
          <CircleStop size={15} aria-hidden="true" />
          End all
        </Button>
      }
      title="End all running sessions?"
      action="End all sessions"
      onConfirm={endAll}
      problem={read.problem ?? (hadEnded(destroy.problem) ? undefined : destroy.problem)}
    >
      Their browsers close, and their files are deleted. Profiles are saved first.
    </Confirm>
  );
}

export function SessionsPage() {
  const [filter, setFilter] = useState<(typeof filters)[number][0]>("all");
  const [isCreating, setCreating] = useState(false);
  const [, , status] = filters.find(([id]) => id === filter) ?? filters[0];
  const list = useList(SessionService.method.list, status === undefined ? {} : { status });
  const thumbnails = useThumbnails(list.data ?? []);
  const createButton = (
    <Button kind="primary" onClick={() => setCreating(true)}>
      <Plus size={15} aria-hidden="true" />
      New session
    </Button>
  );
  return (
    <Page
      title="Sessions"
      about="Browsers that programs, agents and people share."
      actions={
        <>
          {list.data?.some((session) => isRunning(session.status)) && <EndAll />}
          {createButton}
        </>
      }
    >
      <Segments
        label="Status"
        value={filter}
        choices={filters.map(([id, title]) => [id, title])}
        onChoose={setFilter}
      />
      <Card isFlush>
        <List
          list={list}
          label="Sessions"
          columns={columnsWith(thumbnails)}
          keyOf={({ id }) => id}
          empty={
            <EmptyState
              icon={MonitorPlay}
              title={filter === "all" ? "No sessions yet" : "No session has this status"}
              action={filter === "all" && createButton}
            >
              A session is a browser of its own, on the device that you choose.
            </EmptyState>
          }
        />
      </Card>
      {isCreating && <NewSession onClose={() => setCreating(false)} />}
    </Page>
  );
}
