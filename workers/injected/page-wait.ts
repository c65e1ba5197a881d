import { allNamed, firstNamed, type Named } from "./page-refs.ts";
import { findText, wordsAround } from "./page-text.ts";
import * as visibility from "./page-visibility.ts";

/** The value of an attempt, or why the attempt has no value yet. */
export type Seen<Value> = { readonly value: Value } | Hindrance;

/** Why an attempt on an element did not succeed. */
export interface Hindrance {
  /** Predicate for the element, such as `is disabled`. Empty if no element matches. */
  readonly hindrance: string;
  /** Whether the next frame may change the result. */
  readonly isUnsettled?: boolean;
  /** Whether waiting is useless, because the reference is stale. */
  readonly isFinal?: boolean;
}

/** An element, and how long to wait for the element. */
export interface ElementOptions {
  readonly selector: Named;
  readonly timeoutMs: number;
  /** Whether the element must be enabled. */
  readonly isEnabled?: boolean;
}

/**
 * Calls `check` after document changes, at a limited rate, and periodically, until it returns a value or a final
 * hindrance, or time is up. Returns the last result.
 */
export async function until<Value>(timeoutMs: number, check: () => Seen<Value>): Promise<Seen<Value>> {
  const endsAt = performance.now() + timeoutMs;
  for (;;) {
    const beganAt = performance.now();
    const seen = check();
    const now = performance.now();
    if ("value" in seen || seen.isFinal || now >= endsAt) return seen;
    if (seen.isUnsettled) {
      await nextFrame(Math.ceil(endsAt - now));
      // Another attempt would need another frame.
      if (performance.now() >= endsAt) return seen;
      continue;
    }
    // Attempts take at most a fifth of the thread's time, so that the page keeps most of the time.
    await change(Math.min(endsAt - now, 50 + 4 * (now - beganAt)), 4 * (now - beganAt));
  }
}

/** Resolves at the next frame, or after a timeout: hidden and unchanged pages may not render a frame. */
export function nextFrame(max = 2_000): Promise<void> {
  return new Promise((resolve) => {
    const isHidden = visibility.read(Document.prototype, "visibilityState", document) === "hidden";
    const timer = setTimeout(resolve, Math.min(max, isHidden ? 50 : 2_000));
    requestAnimationFrame(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** Resolves `min` milliseconds after the first document change, or after `max` milliseconds without a change. */
function change(max: number, min: number): Promise<void> {
  return new Promise((resolve) => {
    const observer = new MutationObserver(() => {
      observer.disconnect();
      clearTimeout(timer);
      setTimeout(resolve, min);
    });
    const timer = setTimeout(() => {
      observer.disconnect();
      resolve();
    }, max);
    observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  });
}

/** Waits until an element has the requested presence. */
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

function hasMatch(selector: Named): boolean {
  return allNamed(selector).next().done !== true;
}

function hasVisible(selector: Named): boolean {
  const element = firstNamed(selector);
  return element !== undefined && visibility.isVisible(element);
}

/** Waits until a text is visible. Returns the texts around at most `max` of its occurrences. */
export function waitForText(searchOptions: { text: string; timeoutMs: number; max: number }): Promise<Seen<string[]>> {
  return until(searchOptions.timeoutMs, () => {
    const found = findText(searchOptions.text, Math.max(1, searchOptions.max));
    if (found.length === 0) return { hindrance: "did not appear within the timeout" };
    return { value: found.slice(0, searchOptions.max).map(wordsAround) };
  });
}

/** Time of the last document change, initially the start of watching. Undefined until changes are watched. */
let changedAt: number | undefined;

/** Records the time of each later document change. */
export function watchChanges(): void {
  if (changedAt !== undefined) return;
  changedAt = performance.now();
  const note = () => {
    changedAt = performance.now();
  };
  const options = { subtree: true, childList: true, attributes: true, characterData: true };
  new MutationObserver(note).observe(document, options);
}

/** Resolves with true when the document has not changed for `quietMs`, or with false when time is up. */
export async function quiet({ quietMs, timeoutMs }: { quietMs: number; timeoutMs: number }): Promise<boolean> {
  watchChanges();
  const endsAt = performance.now() + timeoutMs;
  // Effects of an action may only become visible in the next frame.
  await nextFrame(quietMs);
  for (;;) {
    const now = performance.now();
    const quietAt = (changedAt ?? 0) + quietMs;
    if (quietAt <= now) return true;
    const left = Math.min(quietAt, endsAt) - now;
    if (left <= 0) return false;
    await new Promise((resolve) => setTimeout(resolve, left));
  }
}

/**
 * Returns the time of the last document change, scroll position and viewport size. Undefined until changes are watched.
 */
export function viewState(): readonly number[] | undefined {
  return changedAt === undefined ? undefined : [changedAt, scrollX, scrollY, innerWidth, innerHeight];
}
