import { create } from "@bufbuild/protobuf";
import type { EventLog } from "../../events/event-log.ts";
import { addEntry } from "../../events/transcript.ts";
import { TranscriptRole } from "../../gen/pilothouse/v1/agent_turn_pb.ts";
import { SessionControlChangedEventSchema } from "../../gen/pilothouse/v1/session_pb.ts";
import type { JobQueues } from "../../jobs/job-queues.ts";
import type { AuditLog } from "../../kernel/call.ts";
import { fail } from "../../platform/errors.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import type { DueTask } from "../../platform/postgres/due-tasks.ts";
import { noSession, sessionGone } from "../ended-session.ts";
import { controlState, toControlMessage } from "../session-control.ts";
import { isEnded } from "../session-states.ts";
import { type ControlNotification, controlNotificationJob } from "./control-notifier.ts";
import { type ControlRow, controlHasLapsed, lockControl, lockLapsed, writeControl } from "./store.ts";

/** Milliseconds until control expires: after the holder's last heartbeat, and after its last input. */
export const lapseMs = { heartbeat: 30_000, input: 300_000 };

export interface ControlParts extends Pick<PlatformParts, "db" | "bus" | "clock" | "ids"> {
  readonly events: EventLog;
  readonly audit: AuditLog;
  readonly jobQueues: JobQueues;
}

export interface Takeover {
  readonly row: ControlRow;
  /** Whether the client already held control, and renewed its lease. */
  readonly isRenewal: boolean;
}

/** Control of sessions. The locked row of the session is the only source of truth. */
export interface Controls {
  /** Locks a running session, releasing expired control. Throws `not-found` or `session-destroyed`. */
  lock(tx: Tx, sessionId: string, accountId: string): Promise<ControlRow>;
  /**
   * Grants control of a locked session to a client, or renews its control. Throws `pair-mode-conflict` with the current
   * holder.
   */
  take(tx: Tx, row: ControlRow, clientId: string): Promise<Takeover>;
  /** Hands control back. Throws `pair-mode-invalid-transition` if the client does not hold control. */
  handBack(tx: Tx, row: ControlRow, clientId: string): Promise<ControlRow>;
  /** Releases control from any holder. */
  release(tx: Tx, row: ControlRow): Promise<ControlRow>;
  /** Releases expired control. */
  readonly sweep: DueTask;
}

export function createControls({ db, events, bus, clock, ids, audit, jobQueues }: ControlParts): Controls {
  /** Writes the next control epoch with its event. Gateways renew their cached routes after the commit. */
  async function change(tx: Tx, row: ControlRow, holder: string | null, cause: string): Promise<ControlRow> {
    const now = clock.now();
    const changed = await writeControl(tx, row.id, {
      holder,
      epoch: BigInt(row.control_epoch) + 1n,
      lapsesAt: holder === null ? null : new Date(now + lapseMs.heartbeat),
      inputAt: holder === null ? null : new Date(now),
    });
    const init = { sessionId: row.id, control: toControlMessage(changed), cause };
    const data = create(SessionControlChangedEventSchema, init);
    await events.append(tx, { accountId: row.account_id, subject: row.id }, SessionControlChangedEventSchema, data);
    jobQueues.enqueue<ControlNotification>(tx, controlNotificationJob, {
      queue: row.id,
      data: { sessionId: row.id, accountId: row.account_id },
    });
    if (row.agent_session_id !== null) {
      const whose = { accountId: row.account_id, sessionId: row.id, agentSessionId: row.agent_session_id };
      const content = { case: "control" as const, value: { control: toControlMessage(changed) } };
      const role = cause === "lapsed" ? TranscriptRole.SYSTEM : TranscriptRole.HUMAN;
      await addEntry(tx, events, whose, { id: ids.next("evt"), role, content }, new Date(now));
    }
    tx.afterCommit(() => bus.publish("session-changed", row.id));
    return changed;
  }

  async function renew(tx: Tx, row: ControlRow): Promise<ControlRow> {
    const now = clock.now();
    return writeControl(tx, row.id, {
      holder: row.control_holder,
      epoch: BigInt(row.control_epoch),
      lapsesAt: new Date(now + lapseMs.heartbeat),
      inputAt: new Date(now),
    });
  }

  const release: Controls["release"] = (tx, row) => change(tx, row, null, "handback");

  function end(tx: Tx, row: ControlRow): Promise<ControlRow> {
    audit.record(tx, {
      accountId: row.account_id,
      actor: { kind: "service" },
      action: "session.control_lapsed",
      subject: row.id,
      data: { client_id: row.control_holder ?? "" },
    });
    return change(tx, row, null, "lapsed");
  }

  return {
    async lock(tx, sessionId, accountId) {
      const row = await lockControl(tx, sessionId, accountId);
      if (!row) throw noSession();
      if (isEnded(row.status)) throw sessionGone(row);
      const isLapsed = row.control_lapses_at !== null && row.control_lapses_at.getTime() <= clock.now();
      return row.control_holder !== null && isLapsed ? end(tx, row) : row;
    },
    async take(tx, row, clientId) {
      const { control_holder: holder } = row;
      if (holder === clientId) return { row: await renew(tx, row), isRenewal: true };
      if (holder !== null) {
        throw fail(
          "pair-mode-conflict",
          { winner_client_id: holder },
          { detail: `the client ${holder} holds control: wait until it hands it back` },
        );
      }
      return { row: await change(tx, row, clientId, "takeover"), isRenewal: false };
    },
    async handBack(tx, row, clientId) {
      const { control_holder: holder } = row;
      if (holder === clientId) return release(tx, row);
      const from = controlState(row);
      const held = holder === null ? {} : { holder_client_id: holder };
      const detail =
        holder === null
          ? "no client holds control, so there is nothing to hand back"
          : `the client ${holder} holds control: only that client can hand it back`;
      throw fail("pair-mode-invalid-transition", { from, transition: "handback", ...held }, { detail });
    },
    release,
    sweep: {
      isDue: () => controlHasLapsed(new Date(clock.now())),
      run: () =>
        db.transaction(async (tx) => {
          for (const row of await lockLapsed(tx, new Date(clock.now()))) await end(tx, row);
        }),
      failureMessage: "failed to release expired control leases",
    },
  };
}
