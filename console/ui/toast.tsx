import { CircleAlert, CircleCheck } from "lucide-react";
import { useSyncExternalStore } from "react";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly isFault: boolean;
}

const shownMs = 5_000;
const listeners = new Set<() => void>();
let toasts: readonly Toast[] = [];
let lastId = 0;

function update(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

/** Shows a short message in a corner of the page. */
export function toast(text: string, { isFault = false } = {}): void {
  lastId += 1;
  const id = lastId;
  update([...toasts, { id, text, isFault }]);
  setTimeout(() => update(toasts.filter((each) => each.id !== id)), shownMs);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => toasts);
  return (
    <div
      role="status"
      className="pointer-events-none fixed inset-x-3 bottom-4 z-60 flex flex-col items-center gap-2 sm:right-5 sm:left-auto sm:items-end"
    >
      {shown.map(({ id, text, isFault }) => (
        <p
          key={id}
          className="pop flex max-w-sm items-center gap-2 rounded-xl border border-line bg-raised px-4 py-2.5 text-sm shadow-high"
        >
          {isFault ? (
            <CircleAlert size={16} className="shrink-0 text-bad" aria-hidden="true" />
          ) : (
            <CircleCheck size={16} className="shrink-0 text-good" aria-hidden="true" />
          )}
          {text}
        </p>
      ))}
    </div>
  );
}
