import type { LendRequest } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { pipeBounds, pipeTotals } from "../cdp/pipe-bounds.ts";

/** What a client may send at the most. */
export const longestMessage = 100 * 2 ** 20;

/** How long a client may wait for room for a large message, and then take over it: others wait for its room. */
const patienceMs = 30_000;

/** How often is looked whether there is room. */
const lookMs = 20;

/**
 * Puts the messages of a client together. A large one counts among those of all browsers of the worker, as the longest
 * that it may become: two that each waited for the other's room would wait for ever. While there is no room the client
 * is not read.
 */
export class Inbox {
  readonly #onSlow: () => void;
  #parts: Uint8Array[] = [];
  #length = 0;
  /** Runs while it holds room. */
  #timer: NodeJS.Timeout | undefined;

  /** `onSlow` hears that a large message has found no room in time, or did not end in time. */
  constructor(onSlow: () => void) {
    this.#onSlow = onSlow;
  }

  /** Takes a part of a message; gives the message where it ends. It is held until it is cleared. */
  async take({ data, last }: Pick<LendRequest, "data" | "last">): Promise<Buffer | undefined> {
    this.#length += data.length;
    if (this.#length > longestMessage) throw new Error("a message is too long");
    if (this.#length > pipeBounds.largeBytes && !this.#timer) await this.#makeRoom();
    this.#parts.push(data);
    return last ? Buffer.concat(this.#parts) : undefined;
  }

  /** Lets go of what it holds. */
  clear(): void {
    this.#parts = [];
    this.#length = 0;
    if (!this.#timer) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    pipeTotals.largeBytes -= longestMessage;
  }

  async #makeRoom(): Promise<void> {
    const hasRoom = () => pipeTotals.largeBytes + longestMessage <= pipeBounds.allLargeBytes;
    if (!(await waitUntil(hasRoom, { timeout: patienceMs, every: lookMs }))) {
      this.#onSlow();
      throw new Error("there is no room for a large message");
    }
    pipeTotals.largeBytes += longestMessage;
    this.#timer = setTimeout(this.#onSlow, patienceMs);
  }
}
