import { within } from "../../src/platform/deadline.ts";

/** Milliseconds for which clients are told nothing at the most. */
const openWithin = 3_000;

/** A page of ours that no client of the browser is told of, nor of the tab that the browser makes for it. */
export class HiddenPage {
  readonly address: string;
  /** Resolves when it is known what belongs to the page; undefined but while it opens. */
  opening: Promise<unknown> | undefined;
  readonly #targets = new Set<string>();

  constructor(address: string) {
    this.address = address;
  }

  /** Opens it; until it is known what belongs to it, clients are told nothing. */
  async open<Value>(work: (hide: (targetId: string) => void) => Promise<Value>): Promise<Value> {
    const opened = work((targetId) => this.#targets.add(targetId));
    this.opening = within(opened, openWithin, undefined);
    await this.opening;
    this.opening = undefined;
    return opened;
  }

  /** What a client is told in place of the members of a message; undefined for one that is about the page alone. */
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
