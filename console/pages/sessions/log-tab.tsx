import { callUnaryMethod, createConnectQueryKey, useTransport } from "@connectrpc/connect-query";
import { useInfiniteQuery } from "@tanstack/react-query";
import { ScrollText } from "lucide-react";
import {
  type ListSessionLogsResponse,
  type SessionLogEntry,
  SessionLogLevel,
  SessionLogService,
} from "../../../src/gen/pilothouse/v1/session_log_pb.ts";
import { problemOf } from "../../api/problem.ts";
import type { Tone } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Entries, type TimedEntry } from "../../ui/entries.tsx";
import { EmptyState, Loaded, ProblemNotice } from "../../ui/state.tsx";

const pageSize = 100;

function toneOf({ type, kind, httpStatus, error, outcome }: SessionLogEntry): Tone {
  if (error !== undefined || type === "exception" || type === "crash" || kind === "error") return "bad";
  if ((httpStatus ?? 0) >= 400 || outcome === "failed" || outcome === "refused") return "bad";
  return kind === "warning" || type === "dialog" ? "warn" : "neutral";
}

function entryOf(entry: SessionLogEntry): TimedEntry {
  const { id, at, type, method, httpStatus, kind, url, fileName, text, error, position, outcome, durationMs } = entry;
  const duration = durationMs === undefined ? undefined : `${durationMs} ms`;
  const parts = [method, httpStatus, kind, url, fileName, text, error, position, outcome, duration];
  return { key: id, at, type, tone: toneOf(entry), text: parts.filter((part) => part !== undefined).join(" ") };
}

interface LogProps {
  readonly sessionId: string;
  readonly isRunning: boolean;
}

/** The log of a session, oldest first. It is read again only on request, because it may have many pages. */
export function LogTab({ sessionId: id, isRunning }: LogProps) {
  const transport = useTransport();
  const { list } = SessionLogService.method;
  const input = { id, limit: pageSize };
  const log = useInfiniteQuery({
    queryKey: [...createConnectQueryKey({ schema: list, transport, input, cardinality: "infinite" }), isRunning],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam: cursor, signal }) =>
      callUnaryMethod(transport, list, { ...input, ...(cursor !== undefined && { cursor }) }, { signal }),
    getNextPageParam: ({ hasMore, nextCursor }) => (hasMore ? nextCursor : undefined),
    staleTime: "static",
    gcTime: 0,
  });
  return (
    <Card
      title="Log"
      about="Navigations, failed and slow requests, downloads, dialogs and crashes, oldest first."
      isFlush
      actions={
        isRunning && (
          <Button size="small" isPending={log.isFetching} onClick={() => void log.refetch()}>
            Refresh
          </Button>
        )
      }
    >
      <Loaded query={{ ...log, data: log.data?.pages }}>
        {(pages) => (
          <>
            <LogEntries pages={pages} />
            {log.error && <ProblemNotice problem={problemOf(log.error)} />}
            {log.hasNextPage && (
              <div className="flex justify-center border-t border-line p-3">
                <Button isPending={log.isFetchingNextPage} onClick={() => void log.fetchNextPage()}>
                  Show newer entries
                </Button>
              </div>
            )}
          </>
        )}
      </Loaded>
    </Card>
  );
}

function LogEntries({ pages }: { readonly pages: readonly ListSessionLogsResponse[] }) {
  const last = pages.at(-1);
  const entries = pages.flatMap(({ data }) => data).map(entryOf);
  if (last?.lost === true) return <EmptyState icon={ScrollText} title="The log was lost" />;
  if (entries.length === 0) {
    return last?.level === SessionLogLevel.OFF ? (
      <EmptyState icon={ScrollText} title="This session keeps no log">
        Settings choose what the sessions of the account record.
      </EmptyState>
    ) : (
      <EmptyState icon={ScrollText} title="The log is empty" />
    );
  }
  return (
    <>
      {last !== undefined && last.dropped > 0 && (
        <p className="border-b border-line px-4 py-2 text-xs text-faint">
          {last.dropped} earlier entries were dropped, because the log has a maximum size.
        </p>
      )}
      <Entries label="Log entries" entries={entries} />
    </>
  );
}
