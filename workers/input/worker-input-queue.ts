import { type InputEvent, TouchPhase } from "../../src/gen/pilothouse/v1/agent_input_pb.ts";
import { within } from "../../src/platform/deadline.ts";
import { type PageInput, releaseAll } from "./page-input.ts";
import { play } from "./person-input.ts";

/** Slots for a person's unhandled input. A person produces less in a minute. */
const capacity = 1_024;

/** An event takes one slot, plus one per 256 characters of text. */
const charactersPerPlace = 256;

/** Unhandled moves of a page after which further moves are merged into the last one. */
const maxMoves = 2;

/** Longest wait for a page to report whether it started a drag. */
const dropMs = 1_000;

/** Keys that may open or close a list of options. */
const listKeys = new Set([" ", "Enter", "Escape", "Tab", "F4", "ArrowUp", "ArrowDown"]);

/** Whether an event may open or close a list of options. */
function mayOpen({ case: kind, value }: InputEvent["event"]): boolean {
  if (kind === "keyDown") return listKeys.has(value.key);
  return kind === "pointerDown" || kind === "pointerUp" || (kind === "touch" && value.phase === TouchPhase.END);
}

/** Input that a page has not handled yet. */
interface Load {
  places: number;
  moves: number;
}

interface Waiting {
  readonly event: InputEvent["event"];
  readonly page: PageInput;
  readonly places: number;
}

/**
 * Ordered queue of a person's input to the page. Only the release of a possible drag waits for the page. Moves that a
 * slow page delays are merged until another event follows.
 */
export class WorkerInputQueue {
  readonly #findInput: () => PageInput;
  readonly #onPressed: () => void;
  readonly #loads = new WeakMap<PageInput, Load>();
  #waiting: Waiting[] = [];
  #page: PageInput | undefined;
  #holdUp: Promise<unknown> | undefined;
  #eased: PromiseWithResolvers<void> | undefined;

  /**
   * `findInput` returns the input devices of the active page. `onPressed` is called when a page has handled an event
   * that may open a list.
   */
  constructor(findInput: () => PageInput, onPressed: () => void = () => undefined) {
    this.#findInput = findInput;
    this.#onPressed = onPressed;
  }

  /** Resolves when a page has handled an event or the queue was cleared, so that there may be room. */
  get eased(): Promise<void> {
    this.#eased ??= Promise.withResolvers();
    return this.#eased.promise;
  }

  /** Queues events in order while there is room. Returns the numbers of accepted and of unsupported events. */
  push(events: readonly InputEvent[]): { accepted: number; dropped: number } {
    const page = this.#findInput();
    if (this.#page && this.#page !== page) releaseAll(this.#page);
    this.#page = page;
    const pushed = { accepted: 0, dropped: 0 };
    for (const { event } of events) {
      const isUnknown = event.case === "viewport" || event.case === undefined;
      if (!isUnknown && !this.#take(event, page)) break;
      pushed[isUnknown ? "dropped" : "accepted"] += 1;
      this.#pump();
    }
    return pushed;
  }

  /** Releases all held keys and buttons, after the input sent so far. */
  release(): void {
    if (this.#page) releaseAll(this.#page);
  }

  /** Discards queued input and releases all held keys and buttons. */
  clear(): void {
    for (const { page, places } of this.#waiting.splice(0)) this.#loadOf(page).places -= places;
    this.release();
    this.#notifyEased();
  }

  #loadOf(page: PageInput): Load {
    const known = this.#loads.get(page) ?? { places: 0, moves: 0 };
    this.#loads.set(page, known);
    return known;
  }

  #take(event: InputEvent["event"], page: PageInput): boolean {
    const last = this.#waiting.at(-1);
    if (event.case === "pointerMove" && last?.event.case === "pointerMove" && last.page === page) {
      this.#waiting.splice(-1, 1, { ...last, event });
      return true;
    }
    const load = this.#loadOf(page);
    const places = 1 + Math.floor(lengthOf(event) / charactersPerPlace);
    // An event larger than the queue is accepted if the queue is empty.
    if (load.places > 0 && load.places + places > capacity) return false;
    load.places += places;
    this.#waiting.push({ event, page, places });
    return true;
  }

  #ease(page: PageInput, places: number): void {
    this.#loadOf(page).places -= places;
    this.#notifyEased();
  }

  #notifyEased(): void {
    this.#eased?.resolve();
    this.#eased = undefined;
  }

  #pump(): void {
    for (let next = this.#waiting[0]; next && !this.#holdUp; next = this.#waiting[0]) {
      const { event, page, places } = next;
      const isMove = event.case === "pointerMove";
      const load = this.#loadOf(page);
      if (isMove && this.#waiting.length === 1 && load.moves >= maxMoves) return;
      this.#waiting.shift();
      const mayDrop = event.case === "pointerUp" && page.mouse.isDragging;
      const played = play(page, event)?.catch(() => undefined) ?? Promise.resolve();
      if (isMove) load.moves += 1;
      void played.then(() => {
        if (isMove) load.moves -= 1;
        if (mayOpen(event)) this.#onPressed();
        this.#ease(page, places);
        this.#pump();
      });
      if (mayDrop) this.#hold(played);
    }
  }

  #hold(drop: Promise<unknown>): void {
    this.#holdUp = within(drop, dropMs, undefined).then(() => {
      this.#holdUp = undefined;
      this.#pump();
    });
  }
}

function lengthOf({ case: kind, value }: InputEvent["event"]): number {
  return kind === "text" || kind === "paste" || kind === "composition" ? value.text.length : 0;
}
