import { useState } from "react";
import { renderSVG } from "uqr";
import { AccountService } from "../../../src/gen/pilothouse/v1/account_pb.ts";
import { MfaService } from "../../../src/gen/pilothouse/v1/mfa_pb.ts";
import { useChange } from "../../api/queries.ts";
import { Badge } from "../../ui/badge.tsx";
import { Actions, Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Code, CopyLine } from "../../ui/copy.tsx";
import { Confirm, Dialog } from "../../ui/dialog.tsx";
import { TextField, textOf } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { ProblemNotice } from "../../ui/state.tsx";

export function SecondFactorCard({ isOn }: { readonly isOn: boolean }) {
  const [isEnrolling, setEnrolling] = useState(false);
  const remove = useChange(MfaService.method.removeTotp, { changes: [AccountService] });
  return (
    <Card
      title="Second factor"
      about="Codes of an app on your phone. Keys, payments and members can then be changed only with a code."
      actions={<Badge tone={isOn ? "good" : "neutral"}>{isOn ? "On" : "Off"}</Badge>}
    >
      {isOn ? (
        <Confirm
          trigger={<Button kind="danger">Turn off</Button>}
          title="Turn the second factor off?"
          action="Turn off"
          onConfirm={() => remove.runAsync({})}
          problem={remove.problem}
        >
          Your password alone then protects the account. The recovery codes no longer work.
        </Confirm>
      ) : (
        <Button kind="primary" onClick={() => setEnrolling(true)}>
          Turn on
        </Button>
      )}
      {isEnrolling && <EnrolDialog onClose={() => setEnrolling(false)} />}
    </Card>
  );
}

function EnrolDialog({ onClose }: { readonly onClose: () => void }) {
  const enrol = useChange(MfaService.method.enrolTotp);
  const confirm = useChange(MfaService.method.confirmTotp, { changes: [AccountService] });
  if (confirm.data) {
    return (
      <Dialog
        title="Recovery codes"
        about="Each works once in place of a code. Keep them where you find them without your phone."
        isOpen
        onClose={onClose}
      >
        <Code text={confirm.data.recoveryCodes.join("\n")} label="the recovery codes" />
        <Actions>
          <Button kind="primary" onClick={onClose}>
            I have saved them
          </Button>
        </Actions>
      </Dialog>
    );
  }
  if (enrol.data) {
    const { otpauthUrl, secret } = enrol.data;
    return (
      <Dialog
        title="Scan the code"
        about="With an app for one-time codes, or enter the secret by hand."
        isOpen
        onClose={onClose}
      >
        <img
          src={`data:image/svg+xml,${encodeURIComponent(renderSVG(otpauthUrl, { border: 2 }))}`}
          alt="QR code of the secret"
          className="mx-auto mb-4 size-44 rounded-lg bg-[#fff]"
        />
        <CopyLine text={secret} label="the secret" />
        <Form className="mt-4" onSubmit={(form) => confirm.run({ code: textOf(form, "code") ?? "" })}>
          <TextField
            label="Code of the app"
            name="code"
            inputMode="numeric"
            autoComplete="one-time-code"
            pattern="[0-9]{6}"
            problem={confirm.problem}
            required
          />
          <ProblemNotice problem={confirm.problem} />
          <Actions>
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" kind="primary" isPending={confirm.isPending}>
              Turn on
            </Button>
          </Actions>
        </Form>
      </Dialog>
    );
  }
  return (
    <Dialog title="Turn on the second factor" isOpen onClose={onClose}>
      <Form onSubmit={(form) => enrol.run({ password: String(form.get("password") ?? "") })}>
        <TextField label="Your password" name="password" type="password" autoComplete="current-password" required />
        <ProblemNotice problem={enrol.problem} />
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" isPending={enrol.isPending}>
            Continue
          </Button>
        </Actions>
      </Form>
    </Dialog>
  );
}
