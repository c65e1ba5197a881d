import {
  type InputHTMLAttributes,
  type ReactNode,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  useId,
} from "react";
import type { ApiProblem } from "../api/problem.ts";
import { classes } from "./classes.ts";

const box =
  "w-full rounded-lg border border-line-strong bg-surface px-3 text-sm shadow-low transition-colors disabled:bg-sunken disabled:text-faint aria-invalid:border-bad";

interface FieldOptions {
  readonly label: string;
  readonly hint?: ReactNode;
  /** Problem of the form. Its fault of this field is shown here. */
  readonly problem?: ApiProblem | undefined;
}

interface FrameProps extends FieldOptions {
  readonly name: string | undefined;
  readonly children: (ids: {
    id: string;
    "aria-describedby": string | undefined;
    "aria-invalid": true | undefined;
  }) => ReactNode;
}

function Frame({ label, hint, problem, name, children }: FrameProps) {
  const id = useId();
  const fault = problem?.faults.find(({ field }) => field === name)?.message;
  const about = fault !== undefined || hint !== undefined ? `${id}-about` : undefined;
  return (
    <div>
      <label htmlFor={id} className="mb-1.5 block text-sm font-medium">
        {label}
      </label>
      {children({ id, "aria-describedby": about, "aria-invalid": fault === undefined ? undefined : true })}
      {about !== undefined && (
        <p id={about} className={classes("mt-1.5 text-xs", fault === undefined ? "text-faint" : "text-bad")}>
          {fault === undefined ? hint : `${label} ${fault}.`}
        </p>
      )}
    </div>
  );
}

export function TextField({
  label,
  hint,
  problem,
  className,
  ...rest
}: FieldOptions & InputHTMLAttributes<HTMLInputElement>) {
  return (
    <Frame label={label} hint={hint} problem={problem} name={rest.name}>
      {(ids) => <input type="text" {...rest} {...ids} className={classes(box, "h-9", className)} />}
    </Frame>
  );
}

export function TextArea({
  label,
  hint,
  problem,
  className,
  ...rest
}: FieldOptions & TextareaHTMLAttributes<HTMLTextAreaElement>) {
  return (
    <Frame label={label} hint={hint} problem={problem} name={rest.name}>
      {(ids) => <textarea rows={4} {...rest} {...ids} className={classes(box, "py-2", className)} />}
    </Frame>
  );
}

export function SelectField({
  label,
  hint,
  problem,
  className,
  ...rest
}: FieldOptions & SelectHTMLAttributes<HTMLSelectElement>) {
  return (
    <Frame label={label} hint={hint} problem={problem} name={rest.name}>
      {(ids) => <select {...rest} {...ids} className={classes(box, "h-9 pr-8", className)} />}
    </Frame>
  );
}

interface CheckProps extends InputHTMLAttributes<HTMLInputElement> {
  readonly label: ReactNode;
  readonly hint?: ReactNode;
}

export function CheckField({ label, hint, ...rest }: CheckProps) {
  const id = useId();
  return (
    <div className="flex items-start gap-2.5">
      <input
        type="checkbox"
        {...rest}
        id={id}
        aria-describedby={hint === undefined ? undefined : `${id}-about`}
        className="mt-0.5 size-4 shrink-0 accent-accent"
      />
      <div className="min-w-0 text-sm">
        <label htmlFor={id}>{label}</label>
        {hint !== undefined && (
          <p id={`${id}-about`} className="text-xs text-faint">
            {hint}
          </p>
        )}
      </div>
    </div>
  );
}

/** Returns the text of a field of a submitted form, or undefined if it is empty. */
export function textOf(form: FormData, name: string): string | undefined {
  const value = form.get(name);
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}
