import { timestampMs } from "@bufbuild/protobuf/wkt";
import { Clock } from "lucide-react";
import { useState } from "react";
import { type Session, SessionService } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { useChange } from "../../api/queries.ts";
import { Actions, Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { SelectField } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { ProblemNotice } from "../../ui/state.tsx";
import { durationText, Until } from "../../ui/time.tsx";

const choices = [10, 30, 60, 240].map((minutes) => minutes * 60);

/** Longest lifetime of a session in seconds. Tiers may allow less. */
const longestSeconds = 86_400;

/** Button and dialog that move the end of a running session. */
export function ExtendSession({ session: { id, liveAt, expiresAt } }: { readonly session: Session }) {
  const [isOpen, setOpen] = useState(false);
  const update = useChange(SessionService.method.update, {
    changes: [SessionService],
    onDone: () => setOpen(false),
  });
  if (!liveAt || !expiresAt) return null;
  const lifetime = Math.ceil((timestampMs(expiresAt) - timestampMs(liveAt)) / 1_000);
  const extend = (form: FormData): void =>
    update.run({
      id,
      timeoutSeconds: Math.min(lifetime + Number(form.get("seconds")), longestSeconds),
      updateMask: { paths: ["timeout_seconds"] },
    });
  const open = (): void => {
    update.reset();
    setOpen(true);
  };
  return (
    <>
      <Button onClick={open}>
        <Clock size={15} aria-hidden="true" />
        Extend
      </Button>
      <Dialog title="Extend the session" isOpen={isOpen} onClose={() => setOpen(false)}>
        <Form onSubmit={extend}>
          <p className="text-sm text-soft">
            It ends <Until at={expiresAt} />. The tier of the account limits how long a session can run.
          </p>
          <SelectField label="Longer by" name="seconds">
            {choices.map((seconds) => (
              <option key={seconds} value={seconds}>
                {durationText(seconds)}
              </option>
            ))}
          </SelectField>
          <ProblemNotice problem={update.problem} />
          <Actions>
            <Button onClick={() => setOpen(false)}>Cancel</Button>
            <Button type="submit" kind="primary" isPending={update.isPending}>
              Extend the session
            </Button>
          </Actions>
        </Form>
      </Dialog>
    </>
  );
}
