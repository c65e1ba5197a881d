import { Plus, Users } from "lucide-react";
import { useState } from "react";
import { AccountService, TeamRole } from "../../../src/gen/pilothouse/v1/account_pb.ts";
import {
  type TeamInvite,
  TeamInviteStatus,
  type TeamMember,
  TeamService,
} from "../../../src/gen/pilothouse/v1/team_pb.ts";
import { useList } from "../../api/lists.ts";
import { useIsManager, useMe } from "../../api/me.ts";
import { useChange } from "../../api/queries.ts";
import { markLoggedOut } from "../../api/session-login.ts";
import { Badge } from "../../ui/badge.tsx";
import { Actions, Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { choiceOf } from "../../ui/choice.ts";
import { Confirm, Dialog } from "../../ui/dialog.tsx";
import { CheckField, SelectField, TextField, textOf } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { List } from "../../ui/list.tsx";
import { Page } from "../../ui/page.tsx";
import { EmptyState, ProblemNotice } from "../../ui/state.tsx";
import { DateOf, Until } from "../../ui/time.tsx";
import { toast } from "../../ui/toast.tsx";

const roles = [
  [TeamRole.OWNER, "Owner"],
  [TeamRole.ADMIN, "Admin"],
  [TeamRole.MEMBER, "Member"],
] as const;

const roleName = (role: TeamRole): string => roles.find(([each]) => each === role)?.[1] ?? "Unknown";

const roleHint = "Members can use everything except team and billing. Only owners can add owners.";

export function TeamPage() {
  const [isInviting, setInviting] = useState(false);
  const isManager = useIsManager();
  const members = useList(TeamService.method.listMembers, {});
  const isLastOwner = ({ role }: TeamMember): boolean =>
    role === TeamRole.OWNER && !members.hasMore && members.data?.filter((each) => each.role === role).length === 1;
  const invites = useList(TeamService.method.listInvites, { status: TeamInviteStatus.PENDING });
  return (
    <Page
      title="Team"
      about="People who share this account."
      actions={
        isManager && (
          <Button kind="primary" onClick={() => setInviting(true)}>
            <Plus size={15} aria-hidden="true" />
            Invite
          </Button>
        )
      }
    >
      <Card title="Members" isFlush>
        <List<TeamMember>
          list={members}
          label="Members"
          keyOf={({ id }) => id}
          columns={[
            {
              title: "Person",
              cell: ({ name, email }) => (
                <span className="block min-w-0">
                  <span className="block font-medium wrap-anywhere">{name ?? email}</span>
                  <span className="block text-xs text-faint wrap-anywhere">{email}</span>
                </span>
              ),
            },
            { title: "Role", cell: (member) => <MemberRole member={member} /> },
            {
              title: "Second factor",
              from: "lg",
              cell: ({ mfaEnrolled }) => (
                <Badge tone={mfaEnrolled ? "good" : "neutral"}>{mfaEnrolled ? "On" : "Off"}</Badge>
              ),
            },
            { title: "Joined", from: "sm", cell: ({ createdAt }) => <DateOf at={createdAt} /> },
            {
              title: "",
              isRight: true,
              cell: (member) => <RemoveMember member={member} isLastOwner={isLastOwner(member)} />,
            },
          ]}
          empty={<EmptyState icon={Users} title="No members" />}
        />
      </Card>
      <Card title="Open invites" isFlush>
        <List<TeamInvite>
          list={invites}
          label="Open invites"
          keyOf={({ id }) => id}
          columns={[
            { title: "Address", cell: ({ email }) => <span className="font-medium break-all">{email}</span> },
            { title: "Role", cell: ({ role }) => roleName(role) },
            { title: "Expires", from: "sm", cell: ({ expiresAt }) => <Until at={expiresAt} /> },
            { title: "", isRight: true, cell: ({ id }) => isManager && <RevokeInvite id={id} /> },
          ]}
          empty={
            <EmptyState icon={Users} title="No open invites">
              An invited person gets an e-mail with a link.
            </EmptyState>
          }
        />
      </Card>
      {isInviting && <InviteForm onClose={() => setInviting(false)} />}
    </Page>
  );
}

function MemberRole({ member: { id, role, userId, email } }: { readonly member: TeamMember }) {
  const isManager = useIsManager();
  const { data: me } = useMe();
  const update = useChange(TeamService.method.updateMember, { changes: [TeamService, AccountService] });
  if (!isManager || me?.user?.id === userId) return roleName(role);
  return (
    <span className="flex flex-col gap-1">
      <select
        aria-label={`Role of ${email}`}
        value={role}
        disabled={update.isPending}
        onChange={({ target }) =>
          update.run({ id, role: choiceOf(roles, target.value), updateMask: { paths: ["role"] } })
        }
        className="h-7 w-fit rounded-md border border-line bg-surface px-1.5 text-sm"
      >
        {roles.map(([value, title]) => (
          <option key={value} value={value}>
            {title}
          </option>
        ))}
      </select>
      <ProblemNotice problem={update.problem} />
    </span>
  );
}

interface RemoveProps {
  readonly member: TeamMember;
  /** The service keeps the last owner of an account. */
  readonly isLastOwner: boolean;
}

function RemoveMember({ member: { id, userId, name, email }, isLastOwner }: RemoveProps) {
  const isManager = useIsManager();
  const { data: me } = useMe();
  const [keepsKeys, setKeepsKeys] = useState(false);
  const remove = useChange(TeamService.method.removeMember, { changes: [TeamService] });
  const leave = useChange(TeamService.method.leave, { onDone: markLoggedOut });
  if (isLastOwner) return null;
  if (me?.user?.id === userId) {
    return (
      <Confirm
        trigger={<Button size="small">Leave</Button>}
        title="Leave the team?"
        action="Leave"
        onConfirm={() => leave.runAsync({})}
        problem={leave.problem}
      >
        The keys that you created in this account are revoked.
      </Confirm>
    );
  }
  if (!isManager) return null;
  return (
    <Confirm
      trigger={
        <Button size="small" kind="danger">
          Remove
        </Button>
      }
      title={`Remove ${name ?? email}?`}
      action="Remove"
      onConfirm={() => remove.runAsync({ id, keepKeys: keepsKeys })}
      problem={remove.problem}
    >
      <span className="mb-3 block">
        The person loses access at once. The keys that they created are revoked, unless you keep them.
      </span>
      <CheckField
        label="Keep their keys, as mine"
        checked={keepsKeys}
        onChange={({ target }) => setKeepsKeys(target.checked)}
      />
    </Confirm>
  );
}

function RevokeInvite({ id }: { readonly id: string }) {
  const revoke = useChange(TeamService.method.revokeInvite, { changes: [TeamService] });
  return (
    <Confirm
      trigger={<Button size="small">Revoke</Button>}
      title="Revoke the invite?"
      action="Revoke"
      onConfirm={() => revoke.runAsync({ id })}
      problem={revoke.problem}
    >
      Its link no longer works.
    </Confirm>
  );
}

function InviteForm({ onClose }: { readonly onClose: () => void }) {
  const { data: me } = useMe();
  const invite = useChange(TeamService.method.createInvite, {
    changes: [TeamService],
    onDone: ({ email }) => {
      toast(`${email} is invited. The e-mail has the link.`);
      onClose();
    },
  });
  const isOwner = me?.role === TeamRole.OWNER;
  return (
    <Dialog title="Invite a person" isOpen onClose={onClose}>
      <Form
        onSubmit={(form) => invite.run({ email: textOf(form, "email") ?? "", role: choiceOf(roles, form.get("role")) })}
      >
        <TextField label="E-mail address" name="email" type="email" problem={invite.problem} required />
        <SelectField label="Role" name="role" defaultValue={TeamRole.MEMBER} hint={roleHint} problem={invite.problem}>
          {roles
            .filter(([role]) => isOwner || role !== TeamRole.OWNER)
            .map(([role, title]) => (
              <option key={role} value={role}>
                {title}
              </option>
            ))}
        </SelectField>
        <ProblemNotice problem={invite.problem} />
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" isPending={invite.isPending}>
            Send the invite
          </Button>
        </Actions>
      </Form>
    </Dialog>
  );
}
