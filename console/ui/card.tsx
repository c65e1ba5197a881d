import type { ReactNode } from "react";
import { classes } from "./classes.ts";

interface CardProps {
  readonly title?: ReactNode;
  readonly about?: ReactNode;
  /** Buttons beside the title. */
  readonly actions?: ReactNode;
  readonly children: ReactNode;
  /** Without padding, for a table or a picture. */
  readonly isFlush?: boolean;
  readonly className?: string;
}

/** A section of a page. */
export function Card({ title, about, actions, children, isFlush = false, className }: CardProps) {
  return (
    <section className={classes("min-w-0 rounded-xl border border-line bg-surface shadow-low", className)}>
      {(title !== undefined || actions !== undefined) && (
        <header className="flex min-h-13 flex-wrap items-center gap-x-4 gap-y-2 border-b border-line px-4 py-2.5">
          <div className={classes("min-w-0 flex-1", about !== undefined && "basis-56")}>
            <h2 className="text-sm font-semibold">{title}</h2>
            {about !== undefined && <p className="mt-0.5 text-sm text-soft">{about}</p>}
          </div>
          {actions}
        </header>
      )}
      <div className={isFlush ? "" : "p-4"}>{children}</div>
    </section>
  );
}

/** Names and values, such as the properties of a session. */
export function Properties({ children }: { readonly children: ReactNode }) {
  return <dl className="grid grid-cols-[minmax(6rem,auto)_1fr] gap-x-5 gap-y-2.5 text-sm">{children}</dl>;
}

export function Property({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <>
      <dt className="text-faint">{name}</dt>
      <dd className="min-w-0 break-words">{children}</dd>
    </>
  );
}
