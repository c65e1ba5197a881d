import { publishChange, type ResourceChange } from "../kernel/account-change.ts";
import type { Actor, AuditLog, AuditRecord, Principal } from "../kernel/call.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
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

/** Resources for which every change has an audit entry, by the first part of the action. */
const resources: Readonly<Record<string, ResourceChange["resource"]>> = {
  agent_session: "agent_session",
  api_key: "api_key",
  profile: "profile",
  recipe: "recipe",
  team_invite: "invite",
  team_member: "member",
  webhook: "webhook",
};

/** Changes by the second part of an action; for other actions, the change is `changed`. */
const changes: Readonly<Record<string, ResourceChange["change"]>> = {
  accept: "gone",
  create: "created",
  delete: "gone",
  destroy: "gone",
  leave: "gone",
  remove: "gone",
  revoke: "gone",
};

/** Returns the changes of watchable resources that an entry records. */
function changesOf({ accountId, action, subject: id, data }: AuditRecord): ResourceChange[] {
  const [kind = "", verb = ""] = action.split(".");
  const resource = resources[kind];
  if (!resource) return [];
  const { member } = data ?? {};
  const joined = action === "team_invite.accept" && typeof member === "string";
  return [
    { accountId, resource, id, change: changes[verb] ?? "changed" },
    ...(joined ? [{ accountId, resource: "member", id: member, change: "created" } as const] : []),
  ];
}

export type AuditLogParts = Pick<PlatformParts, "db" | "ids" | "bus">;

/** Creates the audit log, which also publishes account notices of the recorded changes after the commit. */
export function createAuditLog({ db, ids, bus }: AuditLogParts): AuditLog {
  const record: AuditLog["record"] = (tx, entry) => {
    const id = ids.next("aud");
    insertEntry(tx, id, entry);
    for (const change of changesOf(entry)) tx.afterCommit(() => publishChange(bus, change));
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
