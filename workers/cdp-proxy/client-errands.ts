import { within } from "../../src/platform/deadline.ts";
import type { ClientCommand, Params } from "./client-command.ts";
import { refusalUnderControl } from "./policy.ts";

/** Commands that run a script, which can hold its page up for as long as it likes. */
const scripts = new Set(["Runtime.evaluate", "Runtime.callFunctionOn", "Runtime.runScript"]);

/** Milliseconds that a page may take to end its script by itself, and between two attempts to end it. */
const patienceMs = 50;

/** Milliseconds after which whatever has not ended is abandoned. */
const abandonedAfter = 250;

/** A command that is under way. */
interface Errand {
  readonly method: string;
  readonly sessionId: string | undefined;
  /** Tells the client that nobody waits for its answer any more. */
  readonly onAbandoned: () => void;
}

/** Sends a command of ours as if it were the client's; resolves with the answer, whatever it is. */
type Send = (command: Pick<Errand, "method" | "sessionId"> & { readonly params: Params }) => Promise<unknown>;

/** What a client has had the browser do beyond reading, and has no answer to yet. */
export class ClientErrands {
  readonly #send: Send;
  readonly #open = new Set<Errand>();

  constructor(send: Send) {
    this.#send = send;
  }

  /** Takes note of a command that is passed on. Gives what is called at its answer, and says whether that still counts. */
  begin({ method, sessionId }: Pick<ClientCommand, "method" | "sessionId">, onAbandoned: () => void): () => boolean {
    if (refusalUnderControl(method) === undefined) return () => true;
    const errand = { method, sessionId, onAbandoned };
    this.#open.add(errand);
    return () => this.#open.delete(errand);
  }

  /** Ends the scripts that run and abandons what they would answer, and a little later all else. Resolves when they have ended. */
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

  /** One that waits for a promise holds nothing up: to end it would end the next script of the page instead. */
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
