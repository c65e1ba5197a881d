import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Call } from "../call.ts";
import {
  type DriveRequest,
  DriveRequestSchema,
  type DriveResponse,
  DriveResponseSchema,
} from "../gen/pilothouse/v1/session_pb.ts";
import { BoundedQueue } from "../platform/bounded-queue.ts";
import { pause } from "../platform/bounded-wait.ts";
import { asFailure, fail, failFields } from "../platform/errors.ts";
import { toProblem } from "../platform/problem.ts";
import { validate } from "../platform/validation.ts";
import type { Sessions } from "./sessions.ts";

/** Answers that wait for a slow client before its commands are held: 16 chunks of a capture are 4 MiB. */
const ahead = 16;

/** Milliseconds after which events that could not be read are asked for again. */
const retryEvery = 1_000;

type Answer = MessageInitShape<typeof DriveResponseSchema>;

/** Runs the commands of one stream. */
export type Drive = (call: Call, requests: AsyncIterable<DriveRequest>) => AsyncIterable<DriveResponse>;

/** Makes what runs Drive streams. */
export function createDrive(sessions: Sessions, errorsBase: string): Drive {
  /** Answers one command; the id of the command is put on every answer by the caller. */
  async function* answer(call: Call, sessionId: string, request: DriveRequest): AsyncGenerator<Answer> {
    validate(DriveRequestSchema, request);
    if (request.sessionId !== "" && request.sessionId !== sessionId) {
      throw failFields("validation-failed", { session_id: "is not that of the stream's first message" });
    }
    await call.draw("global");
    const { navigate, interact, wait, capture, state, idempotencyKey = "" } = request;
    if (navigate) yield { navigate: await sessions.navigate(call, sessionId, navigate, idempotencyKey) };
    else if (interact) yield { interact: await sessions.interact(call, sessionId, interact, idempotencyKey) };
    else if (wait) yield { wait: await sessions.wait(call, sessionId, wait) };
    else if (state) yield { state: await sessions.state(call, sessionId) };
    else if (capture) {
      for await (const { header, data } of sessions.capture(call, sessionId, capture)) {
        if (header) yield { capture: header };
        if (data.length > 0) yield { chunk: data };
      }
    }
  }

  /** An error ends its command, not the stream. */
  async function run(
    call: Call,
    sessionId: string,
    request: DriveRequest,
    outbox: BoundedQueue<DriveResponse>,
  ): Promise<void> {
    const { id } = request;
    try {
      for await (const part of answer(call, sessionId, request))
        await outbox.push(create(DriveResponseSchema, { ...part, id }));
    } catch (thrown) {
      const error = toProblem(asFailure(thrown), errorsBase, call.requestId);
      await outbox.push(create(DriveResponseSchema, { id, error }));
    }
  }

  /** Brings the session's events until it ends. What cannot be read at the moment is asked for again. */
  async function pumpEvents(
    call: Call,
    id: string,
    signal: AbortSignal,
    outbox: BoundedQueue<DriveResponse>,
  ): Promise<void> {
    let after: string | undefined;
    while (!signal.aborted) {
      try {
        for await (const event of sessions.follow({ caller: call, id, after, signal })) {
          after = event.id || after;
          await outbox.push(create(DriveResponseSchema, { event }));
        }
        return;
      } catch (error) {
        // Of an end the commands' own answers tell.
        if (asFailure(error).slug !== "internal") return;
      }
      await pause(retryEvery, signal);
    }
  }

  /**
   * Takes the next command only when the one before it has been answered: the transport reads a little ahead and then
   * holds the client, which is the stream's back-pressure.
   */
  async function runAll(
    call: Call,
    requests: AsyncIterable<DriveRequest>,
    outbox: BoundedQueue<DriveResponse>,
    signal: AbortSignal,
  ) {
    let sessionId: string | undefined;
    for await (const request of requests) {
      if (sessionId === undefined) {
        sessionId = request.sessionId;
        if (sessionId === "") throw failFields("validation-failed", { session_id: "is needed in the first message" });
        await sessions.assertRunning(call, sessionId);
        void pumpEvents(call, sessionId, signal, outbox);
      }
      await run(call, sessionId, request, outbox);
      if (call.signal.aborted) throw fail("session-timeout", {}, { detail: "the client stopped waiting" });
    }
  }

  return async function* drive(call, requests) {
    const stop = new AbortController();
    const outbox = new BoundedQueue<DriveResponse>({ items: ahead });
    runAll(call, requests, outbox, AbortSignal.any([call.signal, stop.signal])).then(
      () => outbox.end(),
      (error: unknown) => outbox.fail(error),
    );
    try {
      yield* outbox;
    } finally {
      stop.abort();
    }
  };
}
