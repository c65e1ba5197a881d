import type { ButtonHTMLAttributes, ReactNode } from "react";
import { classes } from "./classes.ts";

type ButtonKind = "primary" | "plain" | "quiet" | "danger";

const kinds: Readonly<Record<ButtonKind, string>> = {
  primary: "bg-accent text-accent-ink border-transparent shadow-low hover:enabled:brightness-110",
  plain: "bg-surface text-ink border-line-strong shadow-low hover:enabled:bg-hover",
  quiet: "bg-transparent text-soft border-transparent hover:enabled:bg-hover hover:enabled:text-ink",
  danger: "bg-surface text-bad border-line-strong shadow-low hover:enabled:bg-bad-wash",
};

const common =
  "inline-flex items-center justify-center gap-1.5 rounded-lg border font-medium whitespace-nowrap select-none transition-colors disabled:opacity-50 disabled:cursor-default";

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly kind?: ButtonKind;
  readonly size?: "small" | "normal" | "large";
  /** Shows that the action runs, and prevents another press. */
  readonly isPending?: boolean;
}

const sizes = { small: "h-7 px-2.5 text-xs", normal: "h-8 px-3 text-sm", large: "h-10 px-4 text-base" };

/** Returns the classes of a link that looks like a button. */
export const buttonClass = (kind: ButtonKind = "plain", size: keyof typeof sizes = "normal"): string =>
  classes(common, kinds[kind], sizes[size]);

export function Button({
  kind = "plain",
  size = "normal",
  isPending = false,
  className,
  children,
  ...rest
}: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      disabled={rest.disabled === true || isPending}
      aria-busy={isPending || undefined}
      className={classes(buttonClass(kind, size), className)}
    >
      {isPending && <Spinner />}
      {children}
    </button>
  );
}

/** A button that shows only an icon. */
export function IconButton({
  label,
  className,
  ...rest
}: Omit<ButtonProps, "aria-label"> & { readonly label: string }) {
  return <Button kind="quiet" {...rest} aria-label={label} title={label} className={classes("!px-0 w-8", className)} />;
}

function Spinner() {
  return (
    <span
      aria-hidden="true"
      className="size-3.5 shrink-0 animate-spin rounded-full border-2 border-current border-r-transparent opacity-70"
    />
  );
}

/** Buttons at the end of a form or dialog. They remain visible while a long dialog scrolls. */
export function Actions({ children }: { readonly children: ReactNode }) {
  return <div className="form-actions mt-5 flex flex-wrap justify-end gap-2">{children}</div>;
}
