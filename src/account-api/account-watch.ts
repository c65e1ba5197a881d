import { create } from "@bufbuild/protobuf";
import type { EventLog } from "../events/event-log.ts";
import {
  AccountChange,
  type AccountNotice,
  AccountNoticeSchema,
  AccountResource,
} from "../gen/pilothouse/v1/account_pb.ts";
import type { Event } from "../gen/pilothouse/v1/common_pb.ts";
import { type ResourceChange, readChange } from "../kernel/account-change.ts";
import type { Call } from "../kernel/call.ts";
import type { Bus } from "../platform/bus.ts";
import { createListeners } from "../platform/listeners.ts";
import { storedNames } from "../platform/rest-json/field-names.ts";
import { PendingNotices } from "./pending-notices.ts";

const { toMessage: toResource } = storedNames(AccountResource);
const { toMessage: toChange } = storedNames(AccountChange);

/** Scope that a bearer needs for the notices of a resource. */
const scopes: Readonly<Record<ResourceChange["resource"], string>> = {
  session: "sessions:read",
  agent_session: "agent_sessions:read",
  turn: "agent_sessions:read",
  webhook: "webhooks:read",
  delivery: "webhooks:read",
  api_key: "api_keys:read",
  member: "team:read",
  invite: "team:read",
  profile: "profiles:read",
  recipe: "recipes:read",
  usage: "account:read",
};

export interface AccountWatchParts {
  readonly events: EventLog;
  readonly bus: Bus;
}

/** Creates the method that streams the changes of the caller's account. */
export function createAccountWatch({ events, bus }: AccountWatchParts): (call: Call) => AsyncIterable<AccountNotice> {
  const listeners = createListeners<ResourceChange>();
  const resumed = createListeners<undefined>();
  bus.subscribe("account-changed", (message) => {
    const change = readChange(message);
    listeners.notify(change.accountId, change);
  });
  bus.subscribe("resumed", () => resumed.notify("", undefined));

  return async function* watch(call) {
    const { accountId } = call.principal;
    const stop = new AbortController();
    const signal = AbortSignal.any([call.signal, stop.signal]);
    const notices = new PendingNotices();
    const unsubscribe = [
      listeners.add(accountId, (change) => notices.add(change)),
      resumed.add("", () => notices.resync()),
    ];
    signal.addEventListener("abort", () => notices.end(), { once: true });
    if (signal.aborted) notices.end();
    try {
      // Watches the log before the first notice, so that no change after the client's first reads is missed.
      const stored = await events.watch({ accountId, signal });
      addEvents(accountId, stored, notices).catch((error: unknown) => notices.fail(error));
      for await (const notice of notices) {
        const message = toNotice(notice, call);
        if (message) yield message;
      }
    } finally {
      for (const end of unsubscribe) end();
      stop.abort();
    }
  };
}

/** Adds the changes that events report. */
async function addEvents(accountId: string, events: AsyncIterable<Event>, notices: PendingNotices): Promise<void> {
  for await (const event of events) for (const change of changesOf(accountId, event)) notices.add(change);
}

/**
 * Converts a notice; undefined if the caller may not read the resource, or if this release does not know the values.
 */
function toNotice(notice: ResourceChange | "resync", { principal }: Call): AccountNotice | undefined {
  if (notice === "resync") return create(AccountNoticeSchema, { change: AccountChange.RESYNC });
  const [resource, change] = [toResource(notice.resource), toChange(notice.change)];
  if (resource === AccountResource.UNSPECIFIED || change === AccountChange.UNSPECIFIED) return undefined;
  if (!principal.scopes.has(scopes[notice.resource])) return undefined;
  return create(AccountNoticeSchema, {
    resource,
    change,
    id: notice.id,
    ...(notice.place !== undefined && { queuePlace: notice.place }),
  });
}

/** Fields that name the resources of an event. */
interface Named {
  readonly session_id?: string;
  readonly agent_session_id?: string;
  readonly turn_id?: string;
  readonly turn?: { readonly id?: string };
}

/** Changes by event type; other types are `changed`. Starts and ends of sessions also change the usage. */
const changes: Readonly<Record<string, ResourceChange["change"]>> = {
  "session.created": "created",
  "session.completed": "gone",
  "session.failed": "gone",
  "agent_session.turn_started": "created",
  "agent_session.ended": "gone",
};

/** Returns the changes that an event reports. */
function changesOf(accountId: string, { type, data }: Event): ResourceChange[] {
  const { session_id: sessionId, agent_session_id: agentId, turn_id, turn }: Named = data ?? {};
  const change = changes[type] ?? "changed";
  const usage: ResourceChange = { accountId, resource: "usage", id: accountId, change: "changed" };
  const [kind] = type.split(".", 1);
  if (kind === "quota") return [usage];
  if (kind === "session" && sessionId !== undefined) {
    const session: ResourceChange = { accountId, resource: "session", id: sessionId, change };
    return change === "changed" ? [session] : [session, usage];
  }
  if (kind !== "agent_session" || agentId === undefined) return [];
  const turnId = turn_id ?? turn?.id;
  if (turnId !== undefined)
    return [
      { accountId, resource: "agent_session", id: agentId, change: "changed" },
      { accountId, resource: "turn", id: turnId, change },
    ];
  return [{ accountId, resource: "agent_session", id: agentId, change }];
}
