import { type ReactNode, useEffect } from "react";
import { Logo } from "../../app/logo.tsx";

interface EntryLayoutProps {
  readonly title: string;
  readonly about?: ReactNode;
  readonly children: ReactNode;
  /** Links below the form. */
  readonly footer?: ReactNode;
}

/** Frame of the pages before a login. */
export function EntryLayout({ title, about, children, footer }: EntryLayoutProps) {
  useEffect(() => {
    document.title = `${title} · Pilothouse`;
  }, [title]);
  return (
    <main className="grid min-h-dvh place-items-center px-4 py-10">
      <div className="w-full max-w-[380px]">
        <div className="mb-6 flex flex-col items-center gap-4 text-center">
          <Logo size={40} />
          <div>
            <h1 className="text-2xl font-semibold tracking-tight">{title}</h1>
            {about !== undefined && <p className="mt-1.5 text-soft">{about}</p>}
          </div>
        </div>
        <div className="rounded-2xl border border-line bg-surface p-5 shadow-low sm:p-6">{children}</div>
        {footer !== undefined && (
          <div className="mt-5 flex flex-col items-center gap-2 text-sm text-soft">{footer}</div>
        )}
      </div>
    </main>
  );
}
