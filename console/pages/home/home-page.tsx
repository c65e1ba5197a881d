import { Link } from "@tanstack/react-router";
import { Check, MonitorPlay, Plus } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { ApiKeyService } from "../../../src/gen/pilothouse/v1/api_key_pb.ts";
import { type Session, SessionService, SessionStatus } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { useList } from "../../api/lists.ts";
import { useMe } from "../../api/me.ts";
import { problemOf } from "../../api/problem.ts";
import { pagePaths } from "../../app/page-paths.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { classes } from "../../ui/classes.ts";
import { Page } from "../../ui/page.tsx";
import { EmptyState, ErrorState, Loaded, Loading } from "../../ui/state.tsx";
import { Ago } from "../../ui/time.tsx";
import { SessionLink } from "../sessions/session-link.tsx";
import { isRunning, reasonText, SessionBadge } from "../sessions/session-words.tsx";
import { Thumbnail, useThumbnails } from "../sessions/thumbnails.tsx";
import { QuotaMeters } from "../usage/quota-meters.tsx";

/** Loaded when it opens, to keep the first page small. */
const NewSession = lazy(async () => ({ default: (await import("../sessions/new-session.tsx")).NewSession }));

/** Maximum number of failed sessions shown. */
const shownFailures = 3;

export function HomePage() {
  const [isCreating, setCreating] = useState(false);
  const me = useMe();
  const sessions = useList(SessionService.method.list, {});
  const keys = useList(ApiKeyService.method.list, {});
  const all = sessions.data ?? [];
  const running = all.filter(({ status }) => isRunning(status));
  const failures = all.filter(({ status }) => status === SessionStatus.ERRORED).slice(0, shownFailures);
  const createButton = (
    <Button kind="primary" onClick={() => setCreating(true)}>
      <Plus size={15} aria-hidden="true" />
      New session
    </Button>
  );
  const name = me.data?.user?.name?.split(" ")[0];
  return (
    <Page title="Home" heading={name ? `Hello, ${name}` : "Home"} actions={createButton}>
      {sessions.data && keys.data && (
        <FirstSteps hasSession={all.length > 0} hasKey={keys.data.length > 0} onStart={() => setCreating(true)} />
      )}
      <Card
        title="Running now"
        isFlush
        actions={
          <Link to={pagePaths.sessions} className="text-sm text-accent-text hover:underline">
            All sessions
          </Link>
        }
      >
        {sessions.data ? (
          <RunningSessions sessions={running} />
        ) : sessions.error ? (
          <ErrorState problem={problemOf(sessions.error)} retry={() => sessions.refetch()} />
        ) : (
          <Loading />
        )}
      </Card>
      {failures.length > 0 && (
        <Card title="Last failures" isFlush>
          <ul>
            {failures.map((session) => (
              <li
                key={session.id}
                className="group flex items-center gap-3 border-b border-line px-4 py-2.5 text-sm last:border-0"
              >
                <span className="min-w-0 flex-1">
                  <SessionLink session={session} />
                </span>
                <span className="text-soft">{reasonText(session.endedReason)}</span>
                <span className="text-faint">
                  <Ago at={session.endedAt} />
                </span>
              </li>
            ))}
          </ul>
        </Card>
      )}
      <Card
        title="Limits"
        actions={
          <Link to={pagePaths.usage} className="text-sm text-accent-text hover:underline">
            Usage
          </Link>
        }
      >
        <Loaded query={me}>{({ account }) => <QuotaMeters quotas={account?.quotas ?? []} />}</Loaded>
      </Card>
      <Suspense fallback={null}>{isCreating && <NewSession onClose={() => setCreating(false)} />}</Suspense>
    </Page>
  );
}

function RunningSessions({ sessions }: { readonly sessions: readonly Session[] }) {
  const thumbnails = useThumbnails(sessions);
  if (sessions.length === 0) {
    return (
      <EmptyState icon={MonitorPlay} title="No running browsers">
        Start a session here, by the API, or by an agent.
      </EmptyState>
    );
  }
  return (
    <ul className="grid grid-cols-1 gap-3 p-4 sm:grid-cols-2 lg:grid-cols-3">
      {sessions.map(({ id, labels, status, archetype, createdAt }) => (
        <li key={id}>
          <Link
            to={pagePaths.session}
            params={{ id }}
            className="block rounded-lg border border-line p-3.5 transition-colors hover:border-line-strong hover:bg-hover"
          >
            <Thumbnail url={thumbnails.get(id)} />
            <span className="mt-3 flex items-center justify-between gap-2">
              <span className="min-w-0 truncate text-sm font-medium">{labels.name ?? `…${id.slice(-8)}`}</span>
              <SessionBadge status={status} />
            </span>
            <span className="mt-2 flex justify-between gap-2 text-xs text-soft">
              <span className="truncate">{archetype}</span>
              <Ago at={createdAt} />
            </span>
          </Link>
        </li>
      ))}
    </ul>
  );
}

interface FirstStepsProps {
  readonly hasSession: boolean;
  readonly hasKey: boolean;
  readonly onStart: () => void;
}

/** Checklist for a new account. Hidden when all steps are done. */
function FirstSteps({ hasSession, hasKey, onStart }: FirstStepsProps) {
  if (hasSession && hasKey) return null;
  const steps = [
    {
      title: "Start a session",
      about: "A browser of its own that you can watch and control.",
      isDone: hasSession,
      action: (
        <Button size="small" onClick={onStart}>
          Start
        </Button>
      ),
    },
    {
      title: "Create an API key",
      about: "Programs use it for the API, for /connect and for MCP.",
      isDone: hasKey,
      action: (
        <Link to={pagePaths.apiKeys} className="text-sm text-accent-text hover:underline">
          API keys
        </Link>
      ),
    },
  ];
  return (
    <Card title="First steps" isFlush>
      <ol>
        {steps.map(({ title, about, isDone, action }, index) => (
          <li key={title} className="flex items-center gap-3 border-b border-line px-4 py-3 last:border-0">
            <span
              aria-hidden="true"
              className={classes(
                "grid size-6 shrink-0 place-items-center rounded-full border text-xs",
                isDone ? "border-transparent bg-good-wash text-good" : "border-line-strong text-soft",
              )}
            >
              {isDone ? <Check size={13} /> : index + 1}
            </span>
            <span className="min-w-0 flex-1 text-sm">
              <span className="block font-medium">
                {title}
                {isDone && <span className="sr-only"> (done)</span>}
              </span>
              <span className="block text-soft">{about}</span>
            </span>
            {!isDone && action}
          </li>
        ))}
      </ol>
    </Card>
  );
}
