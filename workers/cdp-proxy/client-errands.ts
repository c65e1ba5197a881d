import { within } from "../../src/platform/deadline.ts";
import type { ClientCommand, Params } from "./client-command.ts";
import { refusalUnderControl } from "./command-policy.ts";

/** Commands that run a script, which can block its page indefinitely. */
const scripts = new Set(["Runtime.evaluate", "Runtime.callFunctionOn", "Runtime.runScript"]);

/** Milliseconds for a script to end by itself, and between attempts to terminate it. */
const patienceMs = 50;

/** Milliseconds after which pending commands are abandoned. */
const abandonedAfter = 250;

/** A pending command. */
interface Errand {
  readonly method: string;
  readonly sessionId: string | undefined;
  /** Notifies the client that its command was abandoned. */
  readonly onAbandoned: () => void;
}

/** Sends a command on a session of the client. Resolves with the answer, including errors. */
type Send = (command: Pick<Errand, "method" | "sessionId"> & { readonly params: Params }) => Promise<unknown>;

/** Pending commands of a client, except those that only read. */
export class ClientErrands {
  readonly #send: Send;
  readonly #open = new Set<Errand>();

  constructor(send: Send) {
    this.#send = send;
  }

  /** Records a forwarded command. The returned function is called at the answer: false if abandoned. */
  begin({ method, sessionId }: Pick<ClientCommand, "method" | "sessionId">, onAbandoned: () => void): () => boolean {
    if (refusalUnderControl(method) === undefined) return () => true;
    const errand = { method, sessionId, onAbandoned };
    this.#open.add(errand);
    return () => this.#open.delete(errand);
  }

  /** Terminates scripts, then abandons all other commands after 250 ms. Resolves when the scripts have ended. */
  async abandon(): Promise<void> {
    const all = [...this.#open];
    if (all.length === 0) return;
    setTimeout(() => this.#giveUp(all), abandonedAfter).unref();
    const running = Map.groupBy(
      all.filter(({ method }) => scripts.has(method)),
      ({ sessionId }) => sessionId,
    );
    await Promise.all([...running].map(([sessionId, errands]) => this.#endScripts(sessionId, errands)));
  }

  /** Terminates only while the page is blocked: if a script awaits a promise, the page's next script would end. */
  async #endScripts(sessionId: string | undefined, errands: readonly Errand[]): Promise<void> {
    const beganAt = performance.now();
    const isFree = this.#send({ method: "Runtime.evaluate", params: { expression: "0" }, sessionId }).then(() => true);
    while (!(await within(isFree, patienceMs, false)) && performance.now() - beganAt < abandonedAfter) {
      this.#giveUp(errands);
      void this.#send({ method: "Runtime.terminateExecution", params: {}, sessionId });
    }
    this.#giveUp(errands);
  }

  #giveUp(errands: readonly Errand[]): void {
    for (const errand of errands) if (this.#open.delete(errand)) errand.onAbandoned();
  }
}
