import { Check, Copy } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { Button, IconButton } from "./button.tsx";
import { classes } from "./classes.ts";
import { toast } from "./toast.tsx";

const shownMs = 1_500;

function useCopy(text: string): { isCopied: boolean; copy: () => void } {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setCopied(false), shownMs);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const copy = (): void => {
    // Pages over plain http have no clipboard.
    const written = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error("there is no clipboard"));
    written.then(
      () => setCopied(true),
      () => toast("The browser does not allow copying here. Select the text instead.", { isFault: true }),
    );
  };
  return { isCopied, copy };
}

interface CopyProps {
  readonly text: string;
  /** Name of the copied text, such as "key". */
  readonly label: string;
}

export function CopyIcon({ text, label, className }: CopyProps & { readonly className?: string }) {
  const { isCopied, copy } = useCopy(text);
  const Icon = isCopied ? Check : Copy;
  return (
    <IconButton
      label={isCopied ? "Copied" : `Copy ${label}`}
      size="small"
      onClick={copy}
      {...(className !== undefined && { className })}
    >
      <Icon size={14} aria-hidden="true" />
    </IconButton>
  );
}

function CopyButton({ text, label, children }: CopyProps & { readonly children?: ReactNode }) {
  const { isCopied, copy } = useCopy(text);
  const Icon = isCopied ? Check : Copy;
  return (
    <Button size="small" onClick={copy} aria-label={`Copy ${label}`}>
      <Icon size={13} aria-hidden="true" />
      <span aria-live="polite">{isCopied ? "Copied" : (children ?? "Copy")}</span>
    </Button>
  );
}

/** An id that can be copied. */
export function Id({ value, label = "the id" }: { readonly value: string; readonly label?: string }) {
  return (
    <span className="inline-flex max-w-full items-center gap-0.5 align-middle font-mono text-xs">
      <span className="min-w-0 truncate">{value}</span>
      <CopyIcon text={value} label={label} className="-my-1.5 shrink-0" />
    </span>
  );
}

/** A secret or a text to copy as a whole. */
export function CopyLine({ text, label }: CopyProps) {
  return (
    <div className="flex items-center gap-2 rounded-lg border border-line bg-sunken py-1.5 pr-1.5 pl-3">
      <code className="min-w-0 flex-1 font-mono text-xs break-all">{text}</code>
      <CopyButton text={text} label={label} />
    </div>
  );
}

/** Code with a button that copies it. */
export function Code({ text, label, className }: CopyProps & { readonly className?: string }) {
  return (
    <div className={classes("flex items-start rounded-lg border border-line bg-sunken", className)}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard */}
      <section aria-label={label} tabIndex={0} className="min-w-0 flex-1 overflow-auto rounded-lg">
        <pre className="p-3 font-mono text-xs leading-relaxed">
          <code>{text}</code>
        </pre>
      </section>
      <div className="shrink-0 p-2 pl-0">
        <CopyIcon text={text} label={label} className="sm:hidden" />
        <span className="hidden sm:block">
          <CopyButton text={text} label={label} />
        </span>
      </div>
    </div>
  );
}
