import { Link2 } from "lucide-react";
import { useState } from "react";
import { type ViewLink, ViewLinkService } from "../../../src/gen/pilothouse/v1/view_link_pb.ts";
import { useList } from "../../api/lists.ts";
import { useChange } from "../../api/queries.ts";
import { Badge } from "../../ui/badge.tsx";
import { Actions, Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { CopyLine } from "../../ui/copy.tsx";
import { Confirm, Dialog } from "../../ui/dialog.tsx";
import { CheckField, SelectField, TextField, textOf } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { List } from "../../ui/list.tsx";
import { EmptyState, ProblemNotice } from "../../ui/state.tsx";
import { Until } from "../../ui/time.tsx";

export function LinksTab({ sessionId: id }: { readonly sessionId: string }) {
  const [isCreating, setCreating] = useState(false);
  const list = useList(ViewLinkService.method.list, { id });
  const createButton = (
    <Button size="small" kind="primary" onClick={() => setCreating(true)}>
      New link
    </Button>
  );
  return (
    <Card title="View links" about="Show the session to people without a login." actions={createButton} isFlush>
      <List<ViewLink>
        list={list}
        label="View links"
        keyOf={(link) => link.id}
        columns={[
          { title: "Name", cell: ({ name }) => name || "Unnamed" },
          {
            title: "Access",
            cell: ({ control }) => <Badge tone={control ? "accent" : "neutral"}>{control ? "Control" : "Watch"}</Badge>,
          },
          { title: "Expires", from: "sm", cell: ({ expiresAt }) => <Until at={expiresAt} /> },
          { title: "", isRight: true, cell: (link) => <RevokeLink sessionId={id} linkId={link.id} /> },
        ]}
        empty={
          <EmptyState icon={Link2} title="No links">
            A link lets its holder watch, and take control if you allow it.
          </EmptyState>
        }
      />
      {isCreating && <NewLink sessionId={id} onClose={() => setCreating(false)} />}
    </Card>
  );
}

function RevokeLink({ sessionId: id, linkId }: { readonly sessionId: string; readonly linkId: string }) {
  const revoke = useChange(ViewLinkService.method.delete, { changes: [ViewLinkService] });
  return (
    <Confirm
      trigger={<Button size="small">Revoke</Button>}
      title="Revoke the link?"
      action="Revoke"
      onConfirm={() => revoke.runAsync({ id, linkId })}
      problem={revoke.problem}
    >
      Its viewers are disconnected within 5 seconds.
    </Confirm>
  );
}

function NewLink({ sessionId: id, onClose }: { readonly sessionId: string; readonly onClose: () => void }) {
  const create = useChange(ViewLinkService.method.create, { changes: [ViewLinkService] });
  const url = create.data?.url;
  const submit = (form: FormData): void =>
    create.run({
      id,
      name: textOf(form, "name") ?? "",
      control: form.has("control"),
      expiresInSeconds: Number(textOf(form, "seconds")),
    });
  return (
    <Dialog title="New view link" isOpen onClose={onClose}>
      {url === undefined ? (
        <Form onSubmit={submit}>
          <TextField label="Name" name="name" placeholder="Support" maxLength={100} hint="Shown to other viewers" />
          <SelectField label="Works for" name="seconds" defaultValue="3600">
            <option value="900">15 minutes</option>
            <option value="3600">1 hour</option>
            <option value="86400">1 day</option>
          </SelectField>
          <CheckField name="control" label="Viewers may take control" />
          <ProblemNotice problem={create.problem} />
          <Actions>
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" kind="primary" isPending={create.isPending}>
              Create the link
            </Button>
          </Actions>
        </Form>
      ) : (
        <div className="flex flex-col gap-3">
          <CopyLine text={url} label="the link" />
          <p className="text-xs text-faint">The link is shown once. Anyone who has it has this access.</p>
          <Actions>
            <Button kind="primary" onClick={onClose}>
              Done
            </Button>
          </Actions>
        </div>
      )}
    </Dialog>
  );
}
