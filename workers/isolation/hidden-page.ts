import { within } from "../../src/platform/deadline.ts";

/** Maximum milliseconds for which messages to CDP clients are deferred. */
const openWithin = 3_000;

/** An internal page that is hidden from CDP clients, together with its tab target. */
export class HiddenPage {
  readonly address: string;
  /** Set while the page opens. Resolves when the page's targets are known, or after 3 s. */
  opening: Promise<unknown> | undefined;
  readonly #targets = new Set<string>();

  constructor(address: string) {
    this.address = address;
  }

  /**
   * Opens the page with `work`, which calls `hide` for each target of the page. Meanwhile, for at most 3 s, messages to
   * CDP clients are deferred.
   */
  async open<Value>(work: (hide: (targetId: string) => void) => Promise<Value>): Promise<Value> {
    const opened = work((targetId) => this.#targets.add(targetId));
    this.opening = within(opened, openWithin, undefined);
    await this.opening;
    this.opening = undefined;
    return opened;
  }

  /**
   * Returns the members of a message without the page's targets. Returns undefined for an event that names such a
   * target.
   */
  strip(members: Buffer): Buffer | undefined {
    if (![...this.#targets].some((target) => members.includes(target))) return members;
    const { method, result } = JSON.parse(`{${members}}`);
    if (method !== undefined) return undefined;
    const targetInfos = result?.targetInfos?.filter(
      ({ targetId }: { targetId: string }) => !this.#targets.has(targetId),
    );
    return Buffer.from(JSON.stringify({ result: { ...result, targetInfos } }).slice(1, -1));
  }
}
