import type { MessageInitShape } from "@bufbuild/protobuf";
import type { DriveRequest, DriveResponseSchema } from "../../gen/pilothouse/v1/session_pb.ts";
import type { Call } from "../../kernel/call.ts";
import type { Conversation } from "../../kernel/registry.ts";
import { sleep } from "../../platform/bounded-wait.ts";
import { asFailure, failFields } from "../../platform/errors.ts";
import type { Sessions } from "../sessions.ts";
import { callerOf } from "./session-caller.ts";

/** Milliseconds between attempts to read events. */
const retryEvery = 1_000;

type Answer = MessageInitShape<typeof DriveResponseSchema>;

/** Opens a stream of commands. The first message names the session. */
export type Drive = (call: Call, first: DriveRequest) => Promise<Conversation<DriveRequest, Answer>>;

export function createDrive(sessions: Sessions): Drive {
  async function* answer(call: Call, sessionId: string, request: DriveRequest): AsyncGenerator<Answer> {
    if (request.sessionId !== "" && request.sessionId !== sessionId) {
      throw failFields("validation-failed", { session_id: "must be the one in the first message of the stream" });
    }
    const { navigate, interact, wait, observe, read, capture, state, idempotencyKey } = request;
    // All commands of a stream go to its session; the `id` of a command is ignored.
    const id = sessionId;
    const caller = { ...callerOf(call), idempotencyKey };
    if (navigate) yield { navigate: await sessions.navigate(caller, { ...navigate, id }) };
    else if (interact) yield { interact: await sessions.interact(caller, { ...interact, id }) };
    else if (wait) yield { wait: await sessions.wait(caller, { ...wait, id }) };
    else if (observe) yield { observe: await sessions.observe(caller, { ...observe, id }) };
    else if (read) yield { read: await sessions.read(caller, { ...read, id }) };
    else if (state) yield { state: await sessions.getState(caller, { id }) };
    else if (capture) {
      for await (const { header, data } of sessions.captureStream(caller, { ...capture, id })) {
        if (header) yield { capture: header };
        if (data.length > 0) yield { chunk: data };
      }
    }
  }

  /** Streams the session's events until the session ends, and retries after internal failures. */
  async function* unsolicited(caller: Call, id: string, signal: AbortSignal): AsyncGenerator<Answer> {
    let after: string | undefined;
    while (!signal.aborted) {
      try {
        for await (const event of sessions.follow({ caller, id, after, signal })) {
          after = event.id || after;
          yield { event };
        }
        return;
      } catch (error) {
        // If the session has ended, responses to commands report the end, and no more events follow.
        if (asFailure(error).slug !== "internal") return;
      }
      await sleep(retryEvery, signal);
    }
  }

  return async (call, { sessionId: id }) => {
    if (id === "") throw failFields("validation-failed", { session_id: "is required in the first message" });
    await Promise.all([sessions.assertRunning(call, id), call.joinSession(id)]);
    return {
      answer: (request) => answer(call, id, request),
      unsolicited: (signal) => unsolicited(call, id, signal),
    };
  };
}
