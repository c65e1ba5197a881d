import { CloudOff, Lock, type LucideIcon, TriangleAlert } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { type ApiProblem, problemOf, toSentence } from "../api/problem.ts";
import { Button } from "./button.tsx";

interface EmptyProps {
  readonly icon: LucideIcon;
  readonly title: string;
  readonly children?: ReactNode;
  readonly action?: ReactNode;
}

/** Explains a list without entries, and what to do first. */
export function EmptyState({ icon: Icon, title, children, action }: EmptyProps) {
  return (
    <div className="flex flex-col items-center px-6 py-12 text-center">
      <span className="mb-3 grid size-10 place-items-center rounded-xl border border-line bg-sunken text-soft">
        <Icon size={18} aria-hidden="true" />
      </span>
      <p className="font-medium">{title}</p>
      {children !== undefined && <div className="mt-1 max-w-md text-sm text-soft">{children}</div>}
      {action !== undefined && <div className="mt-4 flex flex-wrap justify-center gap-2">{action}</div>}
    </div>
  );
}

const headings: Readonly<Record<string, string>> = {
  offline: "The service does not respond",
  forbidden: "You have no access to this",
  "not-found": "This does not exist",
  "session-destroyed": "The session has ended",
  "rate-limited": "Too many requests",
};

/** Explains why something could not be loaded. */
export function ErrorState({ problem, retry }: { readonly problem: ApiProblem; readonly retry?: () => unknown }) {
  const { slug, detail, requestId } = problem;
  const Icon = slug === "offline" ? CloudOff : slug === "forbidden" ? Lock : TriangleAlert;
  return (
    <div role="alert">
      <EmptyState
        icon={Icon}
        title={headings[slug] ?? "This could not be loaded"}
        action={retry && slug !== "not-found" && slug !== "forbidden" && <Button onClick={retry}>Try again</Button>}
      >
        <p>{slug === "forbidden" ? `${toSentence(detail)} Ask an owner of the account.` : toSentence(detail)}</p>
        {requestId !== undefined && <p className="mt-2 font-mono text-2xs text-faint">Request {requestId}</p>}
      </EmptyState>
    </div>
  );
}

const lineWidths = ["w-1/2", "w-full", "w-3/4"];

/** Lines in place of content that loads. Shown after a moment, so that fast responses do not flicker. */
export function Loading({ lines = 4 }: { readonly lines?: number }) {
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), 150);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div role="status" className="flex flex-col gap-3 p-4">
      <span className="sr-only">Loading</span>
      {isShown &&
        Array.from({ length: lines }, (_, index) => index + 1).map((line) => (
          <div key={line} className={`skeleton h-4 ${lineWidths[line % lineWidths.length]}`} />
        ))}
    </div>
  );
}

interface LoadedProps<T> {
  readonly query: { readonly data: T | undefined; readonly error: Error | null; refetch: () => unknown };
  readonly lines?: number;
  readonly children: (data: T) => ReactNode;
}

/** Shows the data of a query, or why there is none. Data that could not be refreshed stays. */
export function Loaded<T>({ query, lines, children }: LoadedProps<T>) {
  if (query.data !== undefined) return children(query.data);
  if (query.error) return <ErrorState problem={problemOf(query.error)} retry={() => query.refetch()} />;
  return <Loading {...(lines !== undefined && { lines })} />;
}

const scrollTo = (element: HTMLElement | null): void => element?.scrollIntoView({ block: "nearest" });

interface ProblemNoticeProps {
  readonly problem: ApiProblem | undefined;
  /** Names of the fields that show their own faults. */
  readonly fields?: readonly string[];
  /** Replaces the text of the problem. */
  readonly children?: ReactNode;
}

/** A problem in a form or beside a button. */
export function ProblemNotice({ problem, fields = [], children }: ProblemNoticeProps) {
  if (!problem) return null;
  const { detail, requestId, slug } = problem;
  const faults = problem.faults.filter(({ field }) => !fields.includes(field));
  const isMarked = faults.length === 0 && problem.faults.length > 0;
  return (
    <p role="alert" ref={scrollTo} className="rounded-lg bg-bad-wash px-3 py-2 text-sm break-words text-bad">
      {children ??
        (isMarked
          ? "Correct the marked field."
          : faults.length > 0
            ? faults.map(({ field, message }) => `${field} ${message}`).join("; ")
            : toSentence(detail))}
      {slug === "internal" && requestId !== undefined && <span className="block font-mono text-2xs">{requestId}</span>}
    </p>
  );
}
