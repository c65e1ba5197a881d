import { Actions, Button } from "./button.tsx";
import { CopyLine } from "./copy.tsx";
import { Dialog } from "./dialog.tsx";

interface SecretDialogProps {
  readonly title: string;
  readonly secret: string;
  readonly onClose: () => void;
}

/** Shows a secret once. */
export function SecretDialog({ title, secret, onClose }: SecretDialogProps) {
  return (
    <Dialog title={title} about="Copy it now: it is not shown again." isOpen onClose={onClose}>
      <CopyLine text={secret} label="the secret" />
      <Actions>
        <Button kind="primary" onClick={onClose}>
          Done
        </Button>
      </Actions>
    </Dialog>
  );
}
