import { type InputEvent, TouchPhase } from "../../src/gen/pilothouse/v1/agent_input_pb.ts";
import { within } from "../../src/platform/deadline.ts";
import { type PageInput, releaseAll } from "./page-input.ts";
import { dispatchInput } from "./person-input.ts";

/** Slots for unhandled input of a page. A person does not fill them within a minute. */
const capacity = 1_024;

/** Characters per slot: an event takes one slot, plus one for each full 256 characters of its text. */
const charactersPerSlot = 256;

/** If a page has this many unhandled moves, further moves are merged into one. */
const maxMoves = 2;

/** Longest wait in milliseconds for a page to handle the release of a possible drag, before further input is sent. */
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
  slots: number;
  moves: number;
}

interface Waiting {
  readonly event: InputEvent["event"] | { readonly case: "release" };
  readonly page: PageInput;
  readonly slots: number;
}

/**
 * Ordered queue of input to the active page. Input is sent at once, except after the release of a possible drag and
 * while a slow page delays moves. Delayed moves are merged until another event follows.
 */
export class WorkerInputQueue {
  readonly #findInput: () => PageInput;
  readonly #onPressed: () => void;
  readonly #loads = new WeakMap<PageInput, Load>();
  #waiting: Waiting[] = [];
  #page: PageInput | undefined;
  #pendingDrop: Promise<unknown> | undefined;
  #roomFreed: PromiseWithResolvers<void> | undefined;

  /**
   * `findInput` returns the input devices of the active page. `onPressed` is called when a page has handled an event
   * that may open or close a list.
   */
  constructor(findInput: () => PageInput, onPressed: () => void = () => undefined) {
    this.#findInput = findInput;
    this.#onPressed = onPressed;
  }

  /** Resolves when the queue may have more room: a page has handled an event, or the queue was cleared. */
  get roomFreed(): Promise<void> {
    this.#roomFreed ??= Promise.withResolvers();
    return this.#roomFreed.promise;
  }

  /** Queues events in order while there is room. Returns the numbers of accepted and of unsupported events. */
  push(events: readonly InputEvent[]): { accepted: number; dropped: number } {
    const page = this.#findInput();
    if (this.#page !== page) this.release();
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

  /** Releases all held keys, buttons and fingers, after the input queued so far. */
  release(): void {
    if (!this.#page) return;
    this.#waiting.push({ event: { case: "release" }, page: this.#page, slots: 0 });
    this.#pump();
  }

  /** Discards queued input and releases all held keys, buttons and fingers. */
  clear(): void {
    for (const { event, page, slots } of this.#waiting.splice(0)) {
      this.#loadOf(page).slots -= slots;
      if (event.case === "release") releaseAll(page);
    }
    if (this.#page) releaseAll(this.#page);
    this.#notifyRoom();
  }

  #loadOf(page: PageInput): Load {
    const known = this.#loads.get(page) ?? { slots: 0, moves: 0 };
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
    const slots = 1 + Math.floor(lengthOf(event) / charactersPerSlot);
    // An event larger than the queue is accepted if the queue is empty.
    if (load.slots > 0 && load.slots + slots > capacity) return false;
    load.slots += slots;
    this.#waiting.push({ event, page, slots });
    return true;
  }

  #freeSlots(page: PageInput, slots: number): void {
    this.#loadOf(page).slots -= slots;
    this.#notifyRoom();
  }

  #notifyRoom(): void {
    this.#roomFreed?.resolve();
    this.#roomFreed = undefined;
  }

  #pump(): void {
    for (let next = this.#waiting[0]; next && !this.#pendingDrop; next = this.#waiting[0]) {
      const { event, page, slots } = next;
      const isMove = event.case === "pointerMove";
      const load = this.#loadOf(page);
      if (isMove && this.#waiting.length === 1 && load.moves >= maxMoves) return;
      this.#waiting.shift();
      if (event.case === "release") {
        releaseAll(page);
        continue;
      }
      const mayDrop = event.case === "pointerUp" && page.mouse.mayBeDragging;
      const dispatched = dispatchInput(page, event)?.catch(() => undefined) ?? Promise.resolve();
      if (isMove) load.moves += 1;
      void dispatched.then(() => {
        if (isMove) load.moves -= 1;
        if (mayOpen(event)) this.#onPressed();
        this.#freeSlots(page, slots);
        this.#pump();
      });
      if (mayDrop) this.#awaitDrop(dispatched);
    }
  }

  #awaitDrop(drop: Promise<unknown>): void {
    this.#pendingDrop = within(drop, dropMs, undefined).then(() => {
      this.#pendingDrop = undefined;
      this.#pump();
    });
  }
}

function lengthOf({ case: kind, value }: InputEvent["event"]): number {
  return kind === "text" || kind === "paste" || kind === "composition" ? value.text.length : 0;
}
