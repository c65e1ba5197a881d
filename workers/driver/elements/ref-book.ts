import { failFields } from "../../../src/platform/errors.ts";
import type { Ref } from "../../injected/page-refs.ts";
import type { Aim } from "./aim.ts";

/** How many documents a session knows by number: those that it has looked at last. */
const capacity = 1_000;

/** A document that was looked at. */
interface SeenDocument {
  readonly pageId: string;
  /** The frames that it is in, from the outside in. */
  readonly frame: readonly Ref[];
}

/** Which documents of a session have which number in references: `s7e12` is an element of the seventh. */
export class RefBook {
  readonly #documents = new Map<number, SeenDocument>();
  readonly #free: number[] = [];
  #last = 0;

  /** A number for a document that may have one already: one that it does not take is given back. */
  offer(): number {
    const free = this.#free.pop();
    if (free !== undefined) return free;
    this.#last += 1;
    return this.#last;
  }

  /** Takes back what a document has not taken. */
  giveBack(epoch: number): void {
    this.#free.push(epoch);
  }

  /** A document was looked at. */
  note(epoch: number, document: SeenDocument): void {
    this.#documents.delete(epoch);
    this.#documents.set(epoch, document);
    if (this.#documents.size <= capacity) return;
    const [oldest] = this.#documents.keys();
    if (oldest !== undefined) this.#documents.delete(oldest);
  }

  /** What a reference in a request leads to, on the page that the request is about. */
  aimOf(text: string, pageId: string, path: string): Aim {
    const [, epoch = 0, number = 0] = (/^s(\d+)e(\d+)$/.exec(text) ?? []).map(Number);
    const document = this.#documents.get(epoch);
    const fault = (what: string) => failFields("validation-failed", { [`${path}.ref`]: what });
    if (!document) throw fault("was given by no look at this session, or too long ago");
    if (document.pageId !== pageId) throw fault(`is of ${document.pageId}, and this acts on ${pageId}`);
    return { selector: { epoch, number }, frame: document.frame, path };
  }
}
