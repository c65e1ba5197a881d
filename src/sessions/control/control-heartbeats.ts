import type { PlatformParts } from "../../platform/platform-parts.ts";
import { lapseMs } from "./control.ts";
import { type ControlHeartbeat, renewControl } from "./store.ts";

/** Milliseconds between renewals of one client's control lease. Heartbeats and input in between cause no writes. */
const renewEvery = 5_000;

export type ControlHeartbeatsParts = Pick<PlatformParts, "db" | "clock" | "log">;

/** Renews control leases on heartbeats. */
export interface ControlHeartbeats {
  /** Records a heartbeat or input of a client. */
  note(sessionId: string, clientId: string, hasInput: boolean): void;
  /** Drops pending renewals. */
  stop(): void;
}

interface Waiting {
  heartbeat: ControlHeartbeat | undefined;
  readonly timer: NodeJS.Timeout;
}

/** Creates the renewer. The first heartbeat is written at once, later heartbeats at most every `renewEvery`. */
export function createControlHeartbeats({ db, clock, log }: ControlHeartbeatsParts): ControlHeartbeats {
  const waiting = new Map<string, Waiting>();

  function write(key: string, heartbeat: ControlHeartbeat): void {
    const timer = setTimeout(() => {
      const next = waiting.get(key)?.heartbeat;
      waiting.delete(key);
      if (next) write(key, next);
    }, renewEvery);
    timer.unref();
    waiting.set(key, { heartbeat: undefined, timer });
    renewControl(db, heartbeat, lapseMs).catch((error: unknown) => {
      log.warn({ err: error, session_id: heartbeat.sessionId }, "failed to renew control lease");
    });
  }

  return {
    note(sessionId, clientId, hasInput) {
      const key = `${sessionId} ${clientId}`;
      const heartbeatAt = new Date(clock.now());
      const earlier = waiting.get(key);
      const inputAt = hasInput ? heartbeatAt : (earlier?.heartbeat?.inputAt ?? null);
      const heartbeat = { sessionId, clientId, heartbeatAt, inputAt };
      if (earlier) earlier.heartbeat = heartbeat;
      else write(key, heartbeat);
    },
    stop() {
      for (const { timer } of waiting.values()) clearTimeout(timer);
      waiting.clear();
    },
  };
}
