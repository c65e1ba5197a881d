import type { EventLog } from "../events/event-log.ts";
import type { Event } from "../gen/pilothouse/v1/common_pb.ts";
import { BoundedQueue } from "../platform/bounded-queue.ts";
import { sleep } from "../platform/bounded-wait.ts";
import { asFailure } from "../platform/errors.ts";
import { fleetCommands } from "../platform/grpc/fleet-commands.ts";
import type { SessionCaller } from "./commands/session-caller.ts";
import type { SessionRoutes } from "./commands/session-routes.ts";
import type { WorkerCommands } from "./commands/worker-commands.ts";
import { sessionGone } from "./ended-session.ts";
import { isEnded } from "./session-states.ts";

/** Events buffered for a slow reader before their source is paused. */
const maxBuffered = 64;
/** Milliseconds between attempts to read transient events after the connection to the worker broke. */
const retryEvery = 1_000;

const terminalTypes = new Set(["session.completed", "session.failed"]);

export interface SessionEventsParts {
  readonly events: EventLog;
  readonly routes: SessionRoutes;
  readonly commands: WorkerCommands;
}

/** The session to follow, and the position to start from. */
export interface SessionEventsOptions {
  readonly caller: SessionCaller;
  readonly id: string;
  readonly after?: string | undefined;
  /** Ends the stream, in addition to the caller's own signal. */
  readonly signal: AbortSignal;
  /** Receives the identifier of the event after which the stream starts, once the stream is sure to start. */
  readonly onStart?: (eventId: string) => void;
}

/** Streams the stored and transient events of a session. Ends after the terminal event. */
export type SessionEvents = (options: SessionEventsOptions) => AsyncIterable<Event>;

export function createSessionEvents({ events, routes, commands }: SessionEventsParts): SessionEvents {
  /** Forwards console, page, dialog and download events from the worker while the session runs. */
  async function pumpTransient(
    { caller, id, signal }: SessionEventsOptions,
    outbox: BoundedQueue<Event>,
  ): Promise<void> {
    while (!signal.aborted) {
      try {
        const watching = commands.stream(caller, id, fleetCommands.watch, {}, { until: signal, isEndless: true });
        for await (const event of watching) await outbox.push(event);
      } catch (error) {
        if (asFailure(error).slug === "session-destroyed") return;
      }
      await sleep(retryEvery, signal);
    }
  }

  async function pumpStored(stored: AsyncIterable<Event>, outbox: BoundedQueue<Event>): Promise<void> {
    for await (const event of stored) {
      await outbox.push(event);
      if (terminalTypes.has(event.type)) return;
    }
  }

  /** Returns whether the terminal event of an ended session comes after the given event. */
  async function hasMore(accountId: string, subject: string, after: string | undefined): Promise<boolean> {
    const type = after === undefined ? undefined : await events.typeOf({ id: after, accountId, subject });
    return type !== undefined && !terminalTypes.has(type);
  }

  return async function* follow(options) {
    const { caller, id, after, onStart } = options;
    let startId: string | undefined;
    const noteStart = (eventId: string): void => {
      startId = eventId;
    };
    const stop = new AbortController();
    // `stop` ends the watch and the transient events when the reader leaves.
    const signal = AbortSignal.any([options.signal, stop.signal]);
    const { accountId } = caller.principal;
    const outbox = new BoundedQueue<Event>({ items: maxBuffered });
    try {
      // Watching starts before the status is read, so that an end in between is not missed.
      const stored = await events.watch({ accountId, subject: id, after, signal, onStart: onStart && noteStart });
      routes.forget(id);
      const [{ row }] = await Promise.all([routes.find(id, accountId), caller.joinSession?.(id)]);
      if (isEnded(row.status) && !(await hasMore(accountId, id, after))) throw sessionGone(row);
      if (startId !== undefined) onStart?.(startId);
      if (!isEnded(row.status)) void pumpTransient({ ...options, signal }, outbox);
      pumpStored(stored, outbox).then(
        () => outbox.end(),
        (error: unknown) => outbox.fail(error),
      );
      yield* outbox;
    } finally {
      stop.abort();
    }
  };
}
