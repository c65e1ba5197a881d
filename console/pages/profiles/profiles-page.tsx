import { Plus, UserRound } from "lucide-react";
import { useState } from "react";
import { type Profile, ProfileService } from "../../../src/gen/pilothouse/v1/profile_pb.ts";
import { useList } from "../../api/lists.ts";
import { useChange } from "../../api/queries.ts";
import { Badge } from "../../ui/badge.tsx";
import { Actions, Button } from "../../ui/button.tsx";
import { bytesText } from "../../ui/bytes.ts";
import { Card } from "../../ui/card.tsx";
import { CopyIcon } from "../../ui/copy.tsx";
import { Confirm, Dialog } from "../../ui/dialog.tsx";
import { TextField, textOf } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { List } from "../../ui/list.tsx";
import { Page } from "../../ui/page.tsx";
import { EmptyState, ProblemNotice } from "../../ui/state.tsx";
import { Ago } from "../../ui/time.tsx";
import { NewSession } from "../sessions/new-session.tsx";

export function ProfilesPage() {
  const [edited, setEdited] = useState<Profile | "new">();
  const [used, setUsed] = useState<Profile>();
  const list = useList(ProfileService.method.list, {});
  const createButton = (
    <Button kind="primary" onClick={() => setEdited("new")}>
      <Plus size={15} aria-hidden="true" />
      New profile
    </Button>
  );
  return (
    <Page
      title="Profiles"
      about="Cookies and logins that outlive a session. Log in once, and later sessions with the profile are logged in."
      actions={createButton}
    >
      <Card isFlush>
        <List<Profile>
          list={list}
          label="Profiles"
          keyOf={({ id }) => id}
          columns={[
            {
              title: "Name",
              cell: ({ id, name, description }) => (
                <span className="block">
                  <span className="inline-flex items-center font-medium">
                    {name}
                    <CopyIcon text={id} label="the id" className="-my-1.5" />
                  </span>
                  {description !== undefined && <span className="block text-xs text-faint">{description}</span>}
                </span>
              ),
            },
            {
              title: "Status",
              from: "sm",
              cell: ({ activeSessionId, savedAt }) =>
                activeSessionId === undefined ? (
                  <Badge>{savedAt ? "Saved" : "Empty"}</Badge>
                ) : (
                  <Badge tone="good" isLive>
                    In use
                  </Badge>
                ),
            },
            {
              title: "Size",
              from: "sm",
              cell: ({ sizeBytes }) => <span className="tabular-nums">{bytesText(sizeBytes)}</span>,
            },
            { title: "Saved", from: "lg", cell: ({ savedAt }) => <Ago at={savedAt} /> },
            {
              title: "",
              isRight: true,
              cell: (profile) => (
                <span className="inline-flex flex-wrap justify-end gap-1.5">
                  <Button
                    size="small"
                    disabled={profile.activeSessionId !== undefined}
                    onClick={() => setUsed(profile)}
                  >
                    Use
                  </Button>
                  <Button size="small" onClick={() => setEdited(profile)}>
                    Edit
                  </Button>
                  <DeleteProfile profile={profile} />
                </span>
              ),
            },
          ]}
          empty={
            <EmptyState icon={UserRound} title="No profiles yet" action={createButton}>
              Create a profile, start a session with it and log in to a site. The profile is saved when the session
              ends.
            </EmptyState>
          }
        />
      </Card>
      {edited && <ProfileForm profile={edited === "new" ? undefined : edited} onClose={() => setEdited(undefined)} />}
      {used && <NewSession profileId={used.id} onClose={() => setUsed(undefined)} />}
    </Page>
  );
}

function DeleteProfile({ profile: { id, name } }: { readonly profile: Profile }) {
  const remove = useChange(ProfileService.method.delete, { changes: [ProfileService] });
  return (
    <Confirm
      trigger={
        <Button size="small" kind="danger">
          Delete
        </Button>
      }
      title={`Delete ${name}?`}
      action="Delete"
      onConfirm={() => remove.runAsync({ id })}
      problem={remove.problem}
    >
      Its cookies and logins are deleted for good.
    </Confirm>
  );
}

interface ProfileFormProps {
  readonly profile: Profile | undefined;
  readonly onClose: () => void;
}

function ProfileForm({ profile, onClose }: ProfileFormProps) {
  const options = { changes: [ProfileService], onDone: onClose };
  const create = useChange(ProfileService.method.create, options);
  const update = useChange(ProfileService.method.update, options);
  const { problem, isPending } = profile ? update : create;
  const submit = (form: FormData): void => {
    const [name = "", description] = [textOf(form, "name"), textOf(form, "description")];
    const text = description === undefined ? {} : { description };
    if (profile) update.run({ id: profile.id, name, ...text, updateMask: { paths: ["name", "description"] } });
    else create.run({ name, ...text });
  };
  return (
    <Dialog title={profile ? "Edit the profile" : "New profile"} isOpen onClose={onClose}>
      <Form onSubmit={submit}>
        <TextField
          label="Name"
          name="name"
          defaultValue={profile?.name}
          placeholder="Shop login"
          problem={problem}
          required
        />
        <TextField label="Description" name="description" defaultValue={profile?.description} problem={problem} />
        <ProblemNotice problem={problem} />
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" isPending={isPending}>
            {profile ? "Save" : "Create"}
          </Button>
        </Actions>
      </Form>
    </Dialog>
  );
}
