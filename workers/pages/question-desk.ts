import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type LiveAnswer, type LiveQuestion, LiveQuestionSchema } from "../../src/gen/pilothouse/v1/live_pb.ts";
import { fail } from "../../src/platform/errors.ts";

/** How long a person may take to answer. */
const patienceMs = 60_000;

/** How many questions may be open: a dialog and a file chooser for each page that a session may have. */
const mostOpen = 64;

interface OpenQuestion {
  readonly question: LiveQuestion;
  /** Does what was answered; without an answer, what is done while nobody steers. */
  settle(answer: LiveAnswer | undefined): Promise<void>;
  readonly timer: NodeJS.Timeout;
}

/** What pages ask of the person who steers, until that is answered, nobody is there to answer it, or the time is up. */
export class QuestionDesk {
  readonly #onChanged: () => void;
  readonly #open = new Map<string, OpenQuestion>();
  #holder: string | undefined;
  #asked = 0;
  /** Files of the person's that are under way. */
  #moving = 0;

  /** `onChanged` hears that another question is open, or one is not any more. */
  constructor(onChanged: () => void) {
    this.#onChanged = onChanged;
  }

  /** The person who is asked; undefined while nobody steers. */
  get holder(): string | undefined {
    return this.#holder;
  }

  /** What is open, the oldest first. */
  get open(): Iterable<LiveQuestion> {
    return this.#open.values().map(({ question }) => question);
  }

  /** Takes note of who steers, if anybody does: what another one was asked is settled without an answer. */
  hold(holder: string | undefined): void {
    if (holder === this.#holder) return;
    this.#holder = holder;
    for (const id of [...this.#open.keys()]) this.#giveUp(id);
  }

  /** Has the time of what is open begin anew, as long as a file of the person's is under way: until that is disposed of. */
  wait(): Disposable {
    this.#moving += 1;
    return {
      [Symbol.dispose]: () => {
        this.#moving -= 1;
        for (const { timer } of this.#open.values()) timer.refresh();
      },
    };
  }

  /** Asks the person who steers; gives undefined when there is none. To dispose of it takes the question back. */
  ask(
    asked: Omit<MessageInitShape<typeof LiveQuestionSchema>, "id" | "$typeName">,
    settle: OpenQuestion["settle"],
  ): Disposable | undefined {
    if (this.#holder === undefined || this.#open.size >= mostOpen) return undefined;
    this.#asked += 1;
    const id = `que_${this.#asked}`;
    const timer = setTimeout(() => this.#beLate(id), patienceMs);
    this.#open.set(id, { question: create(LiveQuestionSchema, { ...asked, id }), settle, timer });
    this.#onChanged();
    return { [Symbol.dispose]: () => void this.#close(id) };
  }

  /** Answers a question. Throws `not-found` when it is not open. */
  async answer(answer: LiveAnswer): Promise<void> {
    if (!(await this.#settle(answer.questionId, answer))) {
      throw fail("not-found", {}, { detail: "the page does not ask that any more" });
    }
  }

  #beLate(id: string): void {
    if (this.#moving > 0) this.#open.get(id)?.timer.refresh();
    else this.#giveUp(id);
  }

  /** Settles a question without an answer. Nobody waits to hear that its page has gone, or hangs. */
  #giveUp(id: string): void {
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
