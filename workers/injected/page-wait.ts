import type { Named } from "./page-refs.ts";

/*
 * How a document is watched until it shows something. These functions run in the page, beside those of `page-sight.ts` and
 * `page-text.ts`: `page-script.ts` sends their source there.
 */

declare const sight: typeof import("./page-sight.ts");
declare const texts: typeof import("./page-text.ts");
declare const state: { changedAt: number | undefined };

/** What was seen: what was wanted, or what is in its way. */
export type Seen<Value> = { readonly value: Value } | Hindrance;

export interface Hindrance {
  /** What is said of the element, such as `is disabled`; empty when there is none. */
  readonly hindrance: string;
  /** The next frame may show more. */
  readonly isUnsettled?: boolean;
  /** Nothing that the page shows later can help: the reference is stale. */
  readonly isFinal?: boolean;
}

/** Which element is wanted, and for how long it is waited for. */
export interface Wish {
  readonly selector: Named;
  readonly timeoutMs: number;
  /** Only while it takes input. */
  readonly isEnabled?: boolean;
}

/** Looks until it sees what is wanted, or time is up: whenever the document has changed, and now and then. */
export async function until<Value>(timeoutMs: number, look: () => Seen<Value>): Promise<Seen<Value>> {
  const endsAt = performance.now() + timeoutMs;
  for (;;) {
    const beganAt = performance.now();
    const seen = look();
    const now = performance.now();
    if ("value" in seen || seen.isFinal || now >= endsAt) return seen;
    if (seen.isUnsettled) {
      await nextFrame(Math.ceil(endsAt - now));
      // What no frame has come to show is not known to stand still.
      if (performance.now() >= endsAt) return seen;
      continue;
    }
    // A look at a large document must not take all of the page's time.
    await change(Math.min(endsAt - now, 50 + 4 * (now - beganAt)), 4 * (now - beganAt));
  }
}

/** Resolves with the next frame; a hidden page has none, and one that shows nothing new may be given none. */
export function nextFrame(most = 2_000): Promise<void> {
  return new Promise((resolve) => {
    const isHidden = sight.read(Document.prototype, "visibilityState", document) === "hidden";
    const timer = setTimeout(resolve, Math.min(most, isHidden ? 50 : 2_000));
    requestAnimationFrame(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** Resolves when the document has changed, but not before `least` milliseconds, and after `most` in any case. */
export function change(most: number, least: number): Promise<void> {
  return new Promise((resolve) => {
    const observer = new MutationObserver(() => {
      observer.disconnect();
      clearTimeout(timer);
      setTimeout(resolve, least);
    });
    const timer = setTimeout(() => {
      observer.disconnect();
      resolve();
    }, most);
    observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  });
}

/** Waits until an element is, or is no more. */
export function waitForElement({
  selector,
  timeoutMs,
  presence,
}: {
  selector: Named;
  timeoutMs: number;
  presence: string;
}): Promise<Seen<true>> {
  const isWanted = presence === "attached" || presence === "visible";
  const isSeen = presence === "visible" || presence === "hidden";
  return until(timeoutMs, () => {
    const isThere = isSeen ? hasVisible(selector) : hasMatch(selector);
    return isThere === isWanted ? { value: true } : { hindrance: `did not become ${presence} within the timeout` };
  });
}

export function hasMatch(selector: Named): boolean {
  return sight.allMatches(selector).next().done !== true;
}

export function hasVisible(selector: Named): boolean {
  const element = sight.findFirst(selector);
  return element !== undefined && sight.isVisible(element);
}

/** Waits until a text can be seen; gives what is written where it is, at so many places at the most. */
export function waitForText(wish: { text: string; timeoutMs: number; most: number }): Promise<Seen<string[]>> {
  return until(wish.timeoutMs, () => {
    const found = texts.findText(wish.text, Math.max(1, wish.most));
    if (found.length === 0) return { hindrance: "did not appear within the timeout" };
    return { value: found.slice(0, wish.most).map(texts.wordsAround) };
  });
}

/** Takes note of when the document changes, from now on. */
export function watchChanges(): void {
  if (state.changedAt !== undefined) return;
  state.changedAt = performance.now();
  const note = () => {
    state.changedAt = performance.now();
  };
  const options = { subtree: true, childList: true, attributes: true, characterData: true };
  new MutationObserver(note).observe(document, options);
}

/** Resolves when the document has not changed for some time, or time is up. */
export async function quiet({ quietMs, timeoutMs }: { quietMs: number; timeoutMs: number }): Promise<void> {
  watchChanges();
  const endsAt = performance.now() + timeoutMs;
  // What an action has led to shows in the next frame.
  await nextFrame(quietMs);
  for (;;) {
    const now = performance.now();
    const left = Math.min((state.changedAt ?? 0) + quietMs, endsAt) - now;
    if (left <= 0) return;
    await new Promise((resolve) => setTimeout(resolve, left));
  }
}
