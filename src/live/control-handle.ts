import { create } from "@bufbuild/protobuf";
import { type ControlChange, changeControl } from "../agents/sessions/control-change.ts";
import type { LiveAnswer, LiveCommand, LiveInput } from "../gen/pilothouse/v1/live_pb.ts";
import {
  type Control,
  InteractRequestSchema,
  NavigateRequestSchema,
  WaitUntil,
} from "../gen/pilothouse/v1/session_pb.ts";
import type { AuditLog, Call } from "../kernel/call.ts";
import { within } from "../platform/deadline.ts";
import type { Database } from "../platform/postgres/database.ts";
import type { InputListener } from "../sessions/commands/input-sender.ts";
import { callerOf, type SessionCaller } from "../sessions/commands/session-caller.ts";
import type { Controls } from "../sessions/control/control.ts";
import type { ControlHeartbeats } from "../sessions/control/control-heartbeats.ts";
import type { Sessions } from "../sessions/sessions.ts";
import { assertMayControl } from "./person.ts";

export interface ControlHandleParts {
  readonly db: Database;
  readonly sessions: Pick<
    Sessions,
    "notifyControl" | "openInput" | "navigate" | "interact" | "readSelection" | "answerQuestion"
  >;
  readonly controls: Controls;
  readonly controlHeartbeats: ControlHeartbeats;
  readonly audit: AuditLog;
}

/**
 * Maximum milliseconds that commands wait for earlier input, so that a page that hangs can still be left or reloaded.
 */
const afterInputWithin = 1_000;

/** Actions of one viewer on its session. The session's row and the worker decide whether an action is allowed. */
export interface ControlHandle {
  /** Takes or renews control. Throws `pair-mode-conflict` with the current holder if another client has control. */
  take(): Promise<void>;
  /** Hands control back. Throws `pair-mode-invalid-transition` if the viewer does not have control. */
  handBack(): Promise<void>;
  /** Sends input. If the queue is full, returns a promise that resolves when there is room. */
  send(input: LiveInput): Promise<void> | undefined;
  /** Runs a page command, which replaces a running command. Resolves when the command is finished or replaced. */
  command(command: LiveCommand): Promise<void>;
  /** Reads the selected text. */
  copy(): Promise<string>;
  /** Answers a dialog of the page. */
  answer(answer: LiveAnswer): Promise<void>;
  /** Updates the known control holder from a message of the worker. */
  update(control: Control | undefined): void;
  /** Records a heartbeat of the viewer, which renews its control. */
  recordHeartbeat(): void;
  /** Sends the remaining input, and releases pressed keys and buttons. */
  close(): Promise<void>;
}

/** Creates the control handle of a viewer. `listener` receives the progress of the viewer's input. */
export function createControlHandle(
  parts: ControlHandleParts,
  call: Call,
  { sessionId, clientId, ...listener }: InputListener & { readonly sessionId: string; readonly clientId: string },
): ControlHandle {
  const { db, sessions, controls, controlHeartbeats, audit } = parts;
  let accepted = 0;
  let isHolder = false;
  let running = new AbortController();
  const sender = sessions.openInput(callerOf(call), sessionId, clientId, {
    ...listener,
    async onReceipt(receipt) {
      if (receipt.accepted > accepted) controlHeartbeats.note(sessionId, clientId, true);
      accepted = receipt.accepted;
      await listener.onReceipt(receipt);
    },
  });

  /**
   * Throws `forbidden` if the viewer may only watch. Waits until the worker has processed earlier input, but for at
   * most `afterInputWithin`.
   */
  function afterInput(): Promise<void> {
    assertMayControl(call);
    return within(sender.drained(), afterInputWithin, undefined);
  }

  async function change(transition: ControlChange["transition"]): Promise<void> {
    await afterInput();
    const action = transition === "takeover" ? "session.take_over" : "session.hand_back";
    await changeControl(parts, {
      transition,
      call,
      clientId,
      commit: (run) => db.transaction(run),
      lock: async (tx) => ({ row: await controls.lock(tx, sessionId, call.principal.accountId) }),
      audit: (tx) => audit.append(tx, { call, action, subject: sessionId, data: { client_id: clientId } }),
    });
  }

  async function run({ command }: LiveCommand, caller: SessionCaller): Promise<void> {
    if (command.case === "navigate") {
      const request = { id: sessionId, url: command.value.url, waitUntil: WaitUntil.COMMIT };
      await sessions.navigate(caller, create(NavigateRequestSchema, request));
    } else {
      const request = { id: sessionId, action: command, whilePaused: true };
      await sessions.interact(caller, create(InteractRequestSchema, request));
    }
  }

  return {
    take: () => change("takeover"),
    handBack: () => change("handback"),
    send({ events }) {
      assertMayControl(call);
      return sender.send({ events, sequence: 0 });
    },
    async command(command) {
      await afterInput();
      running.abort();
      running = new AbortController();
      const { signal } = running;
      if (isHolder) controlHeartbeats.note(sessionId, clientId, true);
      const caller = { ...callerOf(call), clientId, signal: AbortSignal.any([call.signal, signal]) };
      await run(command, caller).catch((thrown: unknown) => {
        if (!signal.aborted) throw thrown;
      });
    },
    async copy() {
      await afterInput();
      const { text } = await sessions.readSelection({ ...callerOf(call), clientId }, sessionId);
      return text;
    },
    async answer(answer) {
      assertMayControl(call);
      await sessions.answerQuestion({ ...callerOf(call), clientId }, sessionId, answer);
      controlHeartbeats.note(sessionId, clientId, true);
    },
    update(control) {
      if (control) isHolder = control.holderClientId === clientId;
    },
    recordHeartbeat() {
      if (isHolder) controlHeartbeats.note(sessionId, clientId, false);
    },
    close: () => sender.close(),
  };
}
