import { type InputEvent, TouchPhase } from "../../src/gen/pilothouse/v1/agent_input_pb.ts";
import { within } from "../../src/platform/deadline.ts";
import { type PageInput, releaseAll } from "./page-input.ts";
import { play } from "./person-input.ts";

/** How many places there are for a person's input that its page has yet to handle: a person does less in a minute. */
const capacity = 1_024;

/** An event takes a place, and one more for so many characters of text. */
const charactersPerPlace = 256;

/** A page that has so many moves to handle gets only the last one of those that follow. */
const mostMoves = 2;

/** How long a page may take to say whether it has begun to drag. */
const dropMs = 1_000;

/** Keys that may open a list of options, or close it. */
const listKeys = new Set([" ", "Enter", "Escape", "Tab", "F4", "ArrowUp", "ArrowDown"]);

/** Whether an event may open a list of options, or close it. */
function mayOpen({ case: kind, value }: InputEvent["event"]): boolean {
  if (kind === "keyDown") return listKeys.has(value.key);
  return kind === "pointerDown" || kind === "pointerUp" || (kind === "touch" && value.phase === TouchPhase.END);
}

/** What a page has yet to handle. */
interface Load {
  places: number;
  moves: number;
}

/** An event on its way to a page. */
interface Waiting {
  readonly event: InputEvent["event"];
  readonly page: PageInput;
  readonly places: number;
}

/**
 * The way of a person's input to the page, in the order in which it was done. Nothing waits for the page but the release
 * of what may be dragged; what comes between moves that the page is behind with makes them be sent.
 */
export class InputLane {
  readonly #findInput: () => PageInput;
  readonly #onPressed: () => void;
  readonly #loads = new WeakMap<PageInput, Load>();
  #waiting: Waiting[] = [];
  #page: PageInput | undefined;
  #holdUp: Promise<unknown> | undefined;
  #eased: PromiseWithResolvers<void> | undefined;

  /** `findInput` gives what the active page is driven with; `onPressed` hears that a page has handled what may open a list. */
  constructor(findInput: () => PageInput, onPressed: () => void = () => undefined) {
    this.#findInput = findInput;
    this.#onPressed = onPressed;
  }

  /** Resolves when a page has handled something, or the lane was cleared: there may be room. */
  get eased(): Promise<void> {
    this.#eased ??= Promise.withResolvers();
    return this.#eased.promise;
  }

  /** Takes events from the first on, while there is room, and says how many it has sent on their way and how many it cannot do. */
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

  /** Releases all that is held, behind what was done before. */
  release(): void {
    if (this.#page) releaseAll(this.#page);
  }

  /** Forgets what the page was not yet sent, and releases all that is held. */
  clear(): void {
    for (const { page, places } of this.#waiting.splice(0)) this.#loadOf(page).places -= places;
    this.release();
    this.#tellEased();
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
    // Whatever is longer than the lane has it for itself.
    if (load.places > 0 && load.places + places > capacity) return false;
    load.places += places;
    this.#waiting.push({ event, page, places });
    return true;
  }

  #ease(page: PageInput, places: number): void {
    this.#loadOf(page).places -= places;
    this.#tellEased();
  }

  #tellEased(): void {
    this.#eased?.resolve();
    this.#eased = undefined;
  }

  #pump(): void {
    for (let next = this.#waiting[0]; next && !this.#holdUp; next = this.#waiting[0]) {
      const { event, page, places } = next;
      const isMove = event.case === "pointerMove";
      const load = this.#loadOf(page);
      if (isMove && this.#waiting.length === 1 && load.moves >= mostMoves) return;
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
