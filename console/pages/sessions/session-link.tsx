import { Link } from "@tanstack/react-router";
import type { Session } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { pagePaths } from "../../app/page-paths.ts";
import { CopyIcon } from "../../ui/copy.tsx";

/** Name of a session: its label `name`, else its id. */
export function SessionLink({ session: { id, labels } }: { readonly session: Pick<Session, "id" | "labels"> }) {
  return (
    <span className="inline-flex max-w-full items-center gap-0.5">
      <Link
        to={pagePaths.session}
        params={{ id }}
        className="line-clamp-2 min-w-0 font-medium wrap-anywhere hover:underline"
      >
        {labels.name ?? (
          <span className="font-mono text-xs">
            {id.slice(0, 4)}…{id.slice(-8)}
          </span>
        )}
      </Link>
      <CopyIcon
        text={id}
        label="the id"
        className="-my-1.5 hidden opacity-0 group-hover:opacity-100 focus-visible:opacity-100 sm:inline-flex"
      />
    </span>
  );
}
