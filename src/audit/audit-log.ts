import type { Actor, AuditLog, Principal } from "../call.ts";
import type { Ids } from "../platform/ids.ts";
import type { Database } from "../platform/postgres/database.ts";
import { deleteEntry, insertEntry } from "./store.ts";

/** How many characters are kept of what a client calls itself. */
const longestUserAgent = 300;

function actorOf(principal: Principal): Actor {
  const { name } = principal;
  return principal.kind === "key"
    ? { kind: "key", id: principal.keyId, name }
    : { kind: "user", id: principal.userId, name };
}

/** Makes the audit log of a gateway. */
export function createAuditLog({ db, ids }: { readonly db: Database; readonly ids: Ids }): AuditLog {
  const record: AuditLog["record"] = (tx, { userAgent, ...entry }) => {
    const id = ids.next("aud");
    insertEntry(tx, id, { ...entry, userAgent: userAgent?.slice(0, longestUserAgent) });
    return id;
  };
  return {
    record,
    append: (tx, { principal, ...entry }) =>
      record(tx, { ...entry, accountId: principal.accountId, actor: actorOf(principal) }),
    withdraw: (id) => deleteEntry(db, id),
  };
}
