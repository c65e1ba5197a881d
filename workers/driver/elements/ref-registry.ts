import { failFields } from "../../../src/platform/errors.ts";
import type { Ref } from "../../injected/page-refs.ts";
import type { Locator } from "./locator.ts";

/** Maximum number of observed documents per session. The least recently observed are dropped. */
const capacity = 1_000;

/** Page of an observed document, and the frames that contain the document. */
interface SeenDocument {
  readonly pageId: string;
  /** References of the enclosing frame elements, outermost first. Empty for the page's main document. */
  readonly frame: readonly Ref[];
}

/** Observed documents by the first number of a reference: `s7e12` is element 12 of document 7. */
export class RefRegistry {
  readonly #documents = new Map<number, SeenDocument>();
  readonly #free: number[] = [];
  #last = 0;

  /**
   * Returns a new number for a document. If the document already has a number, the caller must pass the new number to
   * `release`.
   */
  allocate(): number {
    const free = this.#free.pop();
    if (free !== undefined) return free;
    this.#last += 1;
    return this.#last;
  }

  /** Makes an unused number available again. */
  release(epoch: number): void {
    this.#free.push(epoch);
  }

  register(epoch: number, document: SeenDocument): void {
    this.#documents.delete(epoch);
    this.#documents.set(epoch, document);
    if (this.#documents.size <= capacity) return;
    const [oldest] = this.#documents.keys();
    if (oldest !== undefined) this.#documents.delete(oldest);
  }

  /**
   * Returns the locator of a reference. Throws `validation-failed` if the document of the reference is unknown or
   * belongs to another page. The element itself may be gone.
   */
  locatorOf(text: string, pageId: string, path: string): Locator {
    const [, epoch = 0, number = 0] = (/^s(\d+)e(\d+)$/.exec(text) ?? []).map(Number);
    const document = this.#documents.get(epoch);
    const fault = (what: string) => failFields("validation-failed", { [path === "" ? "ref" : `${path}.ref`]: what });
    if (!document) throw fault("is unknown or too old: use a reference from a recent observe");
    if (document.pageId !== pageId) throw fault(`belongs to ${document.pageId}, and this command acts on ${pageId}`);
    return { selector: { epoch, number }, frame: document.frame, path };
  }
}
