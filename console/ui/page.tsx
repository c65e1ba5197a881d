import { type ReactNode, useEffect } from "react";
import { classes } from "./classes.ts";

interface PageProps {
  readonly title: string;
  /** Shown in place of the title, such as a name with a badge. */
  readonly heading?: ReactNode;
  readonly about?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

/** The content of a page beside the navigation. */
export function Page({ title, heading, about, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Pilothouse`;
  }, [title]);
  return (
    <div className="mx-auto w-full max-w-[1200px] px-4 pt-5 pb-16 sm:px-8 sm:pt-8">
      <header className="mb-5 flex flex-wrap items-start gap-x-6 gap-y-3 sm:mb-6">
        <div className={classes("min-w-0 flex-1", about === undefined ? "basis-40" : "basis-72")}>
          <h1 className="flex flex-wrap items-center gap-x-3 gap-y-1 text-xl font-semibold tracking-tight">
            {heading ?? title}
          </h1>
          {about !== undefined && <p className="mt-1 max-w-prose text-soft">{about}</p>}
        </div>
        {actions !== undefined && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
      </header>
      <div className="flex flex-col gap-5">{children}</div>
    </div>
  );
}
