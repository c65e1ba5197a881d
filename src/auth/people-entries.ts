import type { UserRow } from "../accounts/users.ts";
import type { AuditLog, AuditRecord, Call } from "../call.ts";
import type { Tx } from "../platform/postgres/database.ts";

/** An entry of what a user has done who shows no bearer. */
type Done = Pick<AuditRecord, "accountId" | "action" | "subject" | "data">;

/** Writes an entry of the audit log for a user whom a public method has come to know. */
export function recordByUser(
  { audit, tx, call }: { readonly audit: AuditLog; readonly tx: Tx; readonly call: Call },
  { id, email: name }: Pick<UserRow, "id" | "email">,
  done: Done,
): void {
  const { requestId, clientAddress } = call;
  const actor = { kind: "user", id, name } as const;
  audit.record(tx, { ...done, actor, requestId, clientAddress, userAgent: call.header("user-agent") });
}
