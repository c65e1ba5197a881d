import { makeAttempt } from "../../jobs/idempotency/request-attempt.ts";
import type { AuditLog, Call } from "../../kernel/call.ts";
import type { Ids } from "../../platform/ids.ts";
import type { Database } from "../../platform/postgres/database.ts";
import { callerOf, type SessionMaker } from "../commands/session-caller.ts";

export interface SessionMakerParts {
  readonly db: Database;
  readonly ids: Ids;
  readonly audit: AuditLog;
}

/** Returns the maker of a session that is only a part of its call. A retry of the call creates another session. */
export function makerOf({ db, ids, audit }: SessionMakerParts, call: Call): SessionMaker {
  return {
    ...callerOf(call),
    ...makeAttempt(db, { ids, resumes: false }),
    charge: () => call.charge(),
    audit: (tx, entry) => void audit.append(tx, { ...entry, action: "session.create", call }),
  };
}
