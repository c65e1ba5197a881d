import type { Actor, AuditLog, Principal } from "../kernel/call.ts";
import type { Ids } from "../platform/ids.ts";
import type { Database } from "../platform/postgres/database.ts";
import { deleteEntry, insertEntry } from "./store.ts";

function actorOf(principal: Principal): Actor {
  const { name } = principal;
  return principal.kind === "key"
    ? { kind: "key", id: principal.keyId, name }
    : { kind: "user", id: principal.userId, name };
}

/** Returns the actor for a user of a method without an authenticated caller. */
export const userActor = ({ id, email }: { readonly id: string; readonly email: string }): Actor => ({
  kind: "user",
  id,
  name: email,
});

export function createAuditLog({ db, ids }: { readonly db: Database; readonly ids: Ids }): AuditLog {
  const record: AuditLog["record"] = (tx, entry) => {
    const id = ids.next("aud");
    insertEntry(tx, id, entry);
    return id;
  };
  return {
    record,
    append: (tx, entry) => {
      const { principal } = entry.call;
      return record(tx, { ...entry, accountId: principal.accountId, actor: actorOf(principal) });
    },
    withdraw: (id) => deleteEntry(db, id),
  };
}
