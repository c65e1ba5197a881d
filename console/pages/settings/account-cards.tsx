import { useQuery } from "@connectrpc/connect-query";
import { useState } from "react";
import { AccountService, type Me, TeamRole } from "../../../src/gen/pilothouse/v1/account_pb.ts";
import { DeletionService } from "../../../src/gen/pilothouse/v1/deletion_pb.ts";
import { useChange } from "../../api/queries.ts";
import { markLoggedOut } from "../../api/session-login.ts";
import { Actions, Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Id } from "../../ui/copy.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { CheckField, TextField, textOf } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { Loaded, ProblemNotice } from "../../ui/state.tsx";
import { toast } from "../../ui/toast.tsx";

export function NamesCard({ me }: { readonly me: Me }) {
  const { account, user, role } = me;
  const isManager = role !== TeamRole.MEMBER;
  const update = useChange(AccountService.method.updateMe, {
    changes: [AccountService],
    onDone: () => toast("The names are saved."),
  });
  const submit = (form: FormData): void => {
    const [name = "", accountName = ""] = [textOf(form, "name"), textOf(form, "account_name")];
    update.run({
      name,
      ...(isManager && { accountName }),
      updateMask: { paths: isManager ? ["name", "account_name"] : ["name"] },
    });
  };
  return (
    <Card title="Names" about={account && <Id value={account.id} label="the id of the account" />}>
      <Form onSubmit={submit} className="max-w-md">
        <TextField
          label="Your name"
          name="name"
          defaultValue={user?.name}
          maxLength={200}
          problem={update.problem}
          required
        />
        <TextField
          label="Name of the account"
          name="account_name"
          defaultValue={account?.name}
          maxLength={200}
          disabled={!isManager}
          problem={update.problem}
          required
        />
        <ProblemNotice problem={update.problem} />
        <Button type="submit" className="self-start" isPending={update.isPending}>
          Save
        </Button>
      </Form>
    </Card>
  );
}

const preferences = [
  ["usageAlerts", "Usage", "When a quota is nearly or fully used"],
  ["webhookFailures", "Webhooks", "When an endpoint keeps failing"],
  ["teamActivity", "Team", "When people join or leave"],
  ["productUpdates", "News", "What is new in the service"],
] as const;

export function PreferencesCard() {
  const current = useQuery(AccountService.method.getEmailPreferences, {});
  const update = useChange(AccountService.method.updateEmailPreferences, { changes: [AccountService] });
  return (
    <Card title="E-mails" about="E-mails about your login and payments are always sent.">
      <Loaded query={current}>
        {(data) => (
          <div className="flex flex-col gap-3.5">
            {preferences.map(([name, title, about]) => (
              <CheckField
                key={name}
                label={title}
                hint={about}
                checked={data[name]}
                disabled={update.isPending}
                onChange={({ target }) => update.run({ [name]: target.checked })}
              />
            ))}
            <ProblemNotice problem={update.problem} />
          </div>
        )}
      </Loaded>
    </Card>
  );
}

export function DeleteAccount({ me: { account, role } }: { readonly me: Me }) {
  const [isOpen, setOpen] = useState(false);
  const remove = useChange(DeletionService.method.deleteAccount, { onDone: markLoggedOut });
  if (role !== TeamRole.OWNER) return null;
  return (
    <Card
      title="Delete the account"
      about="Sessions, keys and card payments stop at once. An owner can restore the account for 7 days by e-mail."
    >
      <Button kind="danger" onClick={() => setOpen(true)}>
        Delete {account?.name}
      </Button>
      <Dialog
        title={`Delete ${account?.name ?? "the account"}?`}
        about="Nothing is refunded."
        isOpen={isOpen}
        onClose={() => setOpen(false)}
      >
        <Form onSubmit={(form) => remove.run({ password: String(form.get("password") ?? "") })}>
          <TextField label="Your password" name="password" type="password" autoComplete="current-password" required />
          <ProblemNotice problem={remove.problem} />
          <Actions>
            <Button onClick={() => setOpen(false)}>Cancel</Button>
            <Button type="submit" kind="danger" isPending={remove.isPending}>
              Delete the account
            </Button>
          </Actions>
        </Form>
      </Dialog>
    </Card>
  );
}
