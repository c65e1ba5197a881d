import type { ReactNode } from "react";
import { classes } from "./classes.ts";

interface FormProps {
  readonly onSubmit: (data: FormData) => void;
  readonly label?: string;
  readonly className?: string;
  readonly children: ReactNode;
}

/** A form whose fields keep their values when the request fails. */
export function Form({ onSubmit, label, className, children }: FormProps) {
  return (
    <form
      aria-label={label}
      className={classes("flex flex-col gap-4", className)}
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit(new FormData(event.currentTarget));
      }}
    >
      {children}
    </form>
  );
}
