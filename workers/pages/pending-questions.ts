import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type LiveAnswer, type LiveQuestion, LiveQuestionSchema } from "../../src/gen/pilothouse/v1/live_pb.ts";
import { fail } from "../../src/platform/errors.ts";

/** Milliseconds in which a person can answer. */
const answerMs = 60_000;

/** Maximum number of open questions: two for each page that a session may have. */
const maxOpen = 64;

interface OpenQuestion {
  readonly question: LiveQuestion;
  /** Applies the answer. If `answer` is undefined, acts as if no person were in control. */
  settle(answer: LiveAnswer | undefined): Promise<void>;
  readonly timer: NodeJS.Timeout;
}

/**
 * Questions of pages to the person in control. A question stays open until it is answered, withdrawn or times out, or
 * the person loses control.
 */
export class PendingQuestions {
  readonly #onChanged: () => void;
  readonly #open = new Map<string, OpenQuestion>();
  #holder: string | undefined;
  #count = 0;
  /** Number of running uploads of the person in control. */
  #uploads = 0;

  /** `onChanged` is called when a question opens or closes. */
  constructor(onChanged: () => void) {
    this.#onChanged = onChanged;
  }

  /** Id of the client that receives questions. Undefined while no person is in control. */
  get holder(): string | undefined {
    return this.#holder;
  }

  /** Open questions, oldest first. */
  get open(): Iterable<LiveQuestion> {
    return this.#open.values().map(({ question }) => question);
  }

  /** Sets the client in control. Questions to the previous client are settled without an answer. */
  setHolder(holder: string | undefined): void {
    if (holder === this.#holder) return;
    this.#holder = holder;
    for (const id of [...this.#open.keys()]) this.#settleUnanswered(id);
  }

  /** Pauses the timeouts of open questions during an upload. Dispose of the result to restart the timeouts. */
  pauseTimeouts(): Disposable {
    this.#uploads += 1;
    return {
      [Symbol.dispose]: () => {
        this.#uploads -= 1;
        for (const { timer } of this.#open.values()) timer.refresh();
      },
    };
  }

  /**
   * Asks the person in control. Returns undefined if no person is in control or too many questions are open. Dispose of
   * the result to withdraw the question.
   */
  ask(
    fields: Omit<MessageInitShape<typeof LiveQuestionSchema>, "id" | "$typeName">,
    settle: OpenQuestion["settle"],
  ): Disposable | undefined {
    if (this.#holder === undefined || this.#open.size >= maxOpen) return undefined;
    this.#count += 1;
    const id = `que_${this.#count}`;
    const timer = setTimeout(() => this.#onTimeout(id), answerMs);
    this.#open.set(id, { question: create(LiveQuestionSchema, { ...fields, id }), settle, timer });
    this.#onChanged();
    return { [Symbol.dispose]: () => void this.#close(id) };
  }

  /** Answers a question. Throws `not-found` if the question is not open. */
  async answer(answer: LiveAnswer): Promise<void> {
    if (!(await this.#settle(answer.questionId, answer))) {
      throw fail("not-found", {}, { detail: "the question is no longer open" });
    }
  }

  #onTimeout(id: string): void {
    if (this.#uploads > 0) this.#open.get(id)?.timer.refresh();
    else this.#settleUnanswered(id);
  }

  /** Settles a question without an answer. Ignores errors: the page may be gone or hang. */
  #settleUnanswered(id: string): void {
    this.#settle(id, undefined).catch(() => undefined);
  }

  async #settle(id: string, answer: LiveAnswer | undefined): Promise<boolean> {
    const open = this.#close(id);
    await open?.settle(answer);
    return open !== undefined;
  }

  #close(id: string): OpenQuestion | undefined {
    const open = this.#open.get(id);
    if (!open) return undefined;
    clearTimeout(open.timer);
    this.#open.delete(id);
    this.#onChanged();
    return open;
  }
}
