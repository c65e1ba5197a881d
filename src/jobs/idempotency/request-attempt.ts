import type { Message } from "@bufbuild/protobuf";
import type { MethodAttempt } from "../../kernel/call.ts";
import { Failure } from "../../platform/errors.ts";
import type { Database, Tx } from "../../platform/postgres/database.ts";

/** Stores the outcome of an attempt in the transaction of its change. Throws if the attempt may not commit. */
type Keep = (tx: Tx, outcome: Message | Failure) => Promise<void>;

/** An attempt that records whether its change was committed. */
export interface WatchedAttempt extends MethodAttempt {
  readonly isCommitted: boolean;
}

/** Creates an attempt. By default, the outcome is not stored. */
export function makeAttempt(
  db: Database,
  { ids, resumes }: Pick<MethodAttempt, "ids" | "resumes">,
  keep: Keep = async () => undefined,
): WatchedAttempt {
  let isCommitted = false;
  return {
    ids,
    resumes,
    get isCommitted() {
      return isCommitted;
    },
    async commit(run) {
      const outcome = await db.transaction(async (tx) => {
        const made = await run(tx);
        await keep(tx, made);
        return made;
      });
      isCommitted = true;
      if (outcome instanceof Failure) throw outcome;
      return outcome;
    },
  };
}
