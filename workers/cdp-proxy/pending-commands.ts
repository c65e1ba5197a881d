import { within } from "../../src/platform/deadline.ts";
import type { ClientCommand, Params } from "./client-command.ts";
import { refusalUnderControl } from "./command-policy.ts";

/** Commands that run a script, which can block its page indefinitely. */
const scripts = new Set(["Runtime.evaluate", "Runtime.callFunctionOn", "Runtime.runScript"]);

/** Milliseconds for a page to respond before its scripts are terminated, and between further attempts. */
const timeoutMs = 50;

/** Milliseconds after which pending commands are abandoned. */
const abandonedAfter = 250;

interface PendingCommand {
  readonly method: string;
  readonly sessionId: string | undefined;
  /** Notifies the client that its command was abandoned. */
  readonly onAbandoned: () => void;
}

/** Sends a command on a session of the client. Resolves with the answer, including errors. */
type Send = (command: Pick<PendingCommand, "method" | "sessionId"> & { readonly params: Params }) => Promise<unknown>;

/** Pending commands of a client, except commands that only read. */
export class PendingCommands {
  readonly #send: Send;
  readonly #open = new Set<PendingCommand>();

  constructor(send: Send) {
    this.#send = send;
  }

  /**
   * Records a forwarded command. Returns a function to call when the command is answered. The function returns false if
   * the command was abandoned.
   */
  begin({ method, sessionId }: Pick<ClientCommand, "method" | "sessionId">, onAbandoned: () => void): () => boolean {
    if (refusalUnderControl(method) === undefined) return () => true;
    const pending = { method, sessionId, onAbandoned };
    this.#open.add(pending);
    return () => this.#open.delete(pending);
  }

  /**
   * Terminates scripts that block a page and abandons all scripts. Abandons the other commands after 250 ms. Resolves
   * when the scripts are abandoned, after at most about 300 ms.
   */
  async abandon(): Promise<void> {
    const all = [...this.#open];
    if (all.length === 0) return;
    setTimeout(() => this.#abandonAll(all), abandonedAfter).unref();
    const running = Map.groupBy(
      all.filter(({ method }) => scripts.has(method)),
      ({ sessionId }) => sessionId,
    );
    await Promise.all([...running].map(([sessionId, pendingCommands]) => this.#endScripts(sessionId, pendingCommands)));
  }

  /**
   * Terminates scripts only while the page is blocked. If a script awaits a promise, the page's next script would be
   * terminated instead.
   */
  async #endScripts(sessionId: string | undefined, pendingCommands: readonly PendingCommand[]): Promise<void> {
    const beganAt = performance.now();
    const isFree = this.#send({ method: "Runtime.evaluate", params: { expression: "0" }, sessionId }).then(() => true);
    while (!(await within(isFree, timeoutMs, false)) && performance.now() - beganAt < abandonedAfter) {
      this.#abandonAll(pendingCommands);
      void this.#send({ method: "Runtime.terminateExecution", params: {}, sessionId });
    }
    this.#abandonAll(pendingCommands);
  }

  #abandonAll(pendingCommands: readonly PendingCommand[]): void {
    for (const pending of pendingCommands) if (this.#open.delete(pending)) pending.onAbandoned();
  }
}
