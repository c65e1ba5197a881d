import { X } from "lucide-react";
import { AlertDialog, Dialog as Radix } from "radix-ui";
import { type ReactNode, useState } from "react";
import type { ApiProblem } from "../api/problem.ts";
import { Actions, Button, IconButton } from "./button.tsx";
import { ProblemNotice } from "./state.tsx";

const backdrop = "fade fixed inset-0 z-40 bg-[rgb(8_10_16/0.5)] backdrop-blur-[2px]";
const panel =
  "pop fixed inset-x-3 bottom-3 z-50 mx-auto max-h-[calc(100dvh-1.5rem)] max-w-lg overflow-auto rounded-2xl border border-line bg-raised p-5 shadow-high sm:top-[12vh] sm:bottom-auto sm:max-h-[76vh]";

interface DialogProps {
  readonly title: string;
  readonly about?: ReactNode;
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** A dialog over the page. */
export function Dialog({ title, about, isOpen, onClose, children }: DialogProps) {
  return (
    <Radix.Root open={isOpen} onOpenChange={(next) => !next && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className={backdrop} />
        <Radix.Content className={panel} {...(about === undefined && { "aria-describedby": undefined })}>
          <div className="mb-4 flex items-start gap-4">
            <div className="min-w-0 flex-1">
              <Radix.Title className="text-lg font-semibold">{title}</Radix.Title>
              {about !== undefined && <Radix.Description className="mt-1 text-sm text-soft">{about}</Radix.Description>}
            </div>
            <Radix.Close asChild>
              <IconButton label="Close" className="-mt-1 -mr-1">
                <X size={16} aria-hidden="true" />
              </IconButton>
            </Radix.Close>
          </div>
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

interface ConfirmProps {
  readonly trigger: ReactNode;
  readonly title: string;
  readonly children: ReactNode;
  readonly action: string;
  /** Resolves when done; the dialog then closes. */
  readonly onConfirm: () => Promise<unknown>;
  readonly problem?: ApiProblem | undefined;
}

/** Asks before something that cannot be undone. */
export function Confirm({ trigger, title, children, action, onConfirm, problem }: ConfirmProps) {
  const [isOpen, setOpen] = useState(false);
  const [isPending, setPending] = useState(false);
  const confirm = () => {
    setPending(true);
    onConfirm()
      .then(
        () => setOpen(false),
        () => undefined,
      )
      .finally(() => setPending(false));
  };
  return (
    <AlertDialog.Root open={isOpen} onOpenChange={setOpen}>
      <AlertDialog.Trigger asChild>{trigger}</AlertDialog.Trigger>
      <AlertDialog.Portal>
        <AlertDialog.Overlay className={backdrop} />
        <AlertDialog.Content className={panel}>
          <AlertDialog.Title className="text-lg font-semibold">{title}</AlertDialog.Title>
          <AlertDialog.Description asChild>
            <div className="mt-1 mb-3 text-sm text-soft">{children}</div>
          </AlertDialog.Description>
          <ProblemNotice problem={problem} />
          <Actions>
            <AlertDialog.Cancel asChild>
              <Button>Cancel</Button>
            </AlertDialog.Cancel>
            <Button kind="danger" isPending={isPending} onClick={confirm}>
              {action}
            </Button>
          </Actions>
        </AlertDialog.Content>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  );
}
