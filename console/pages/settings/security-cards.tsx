import { MonitorSmartphone } from "lucide-react";
import { useState } from "react";
import { CredentialsService } from "../../../src/gen/pilothouse/v1/credentials_pb.ts";
import { LoginService, type OpenLogin } from "../../../src/gen/pilothouse/v1/login_pb.ts";
import { useList } from "../../api/lists.ts";
import { useChange } from "../../api/queries.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { TextField, textOf } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { List } from "../../ui/list.tsx";
import { EmptyState, ProblemNotice } from "../../ui/state.tsx";
import { Ago } from "../../ui/time.tsx";
import { toast } from "../../ui/toast.tsx";

export function PasswordCard() {
  const [version, setVersion] = useState(0);
  const change = useChange(CredentialsService.method.changePassword, {
    changes: [LoginService],
    onDone: () => {
      setVersion(version + 1);
      toast("The password is changed. All other logins have ended.");
    },
  });
  return (
    <Card title="Password" about="A change ends all your other logins.">
      <Form
        key={version}
        className="max-w-md"
        onSubmit={(form) =>
          change.run({
            currentPassword: String(form.get("current_password") ?? ""),
            password: String(form.get("password") ?? ""),
          })
        }
      >
        <TextField
          label="Current password"
          name="current_password"
          type="password"
          autoComplete="current-password"
          required
        />
        <TextField
          label="New password"
          name="password"
          type="password"
          autoComplete="new-password"
          minLength={10}
          hint="10 characters or more, and hard to guess"
          problem={change.problem}
          required
        />
        <ProblemNotice problem={change.problem} />
        <Button type="submit" className="self-start" isPending={change.isPending}>
          Change the password
        </Button>
      </Form>
    </Card>
  );
}

export function EmailCard({ email }: { readonly email: string }) {
  const request = useChange(CredentialsService.method.requestEmailChange);
  return (
    <Card title="E-mail address" about={email}>
      {request.data ? (
        <p className="text-sm">An e-mail to {request.data.email} has a link that confirms the change.</p>
      ) : (
        <Form
          className="max-w-md"
          onSubmit={(form) =>
            request.run({ email: textOf(form, "email") ?? "", password: String(form.get("password") ?? "") })
          }
        >
          <TextField
            label="New address"
            name="email"
            type="email"
            autoComplete="email"
            problem={request.problem}
            required
          />
          <TextField label="Password" name="password" type="password" autoComplete="current-password" required />
          <ProblemNotice problem={request.problem} />
          <Button type="submit" className="self-start" isPending={request.isPending}>
            Change the address
          </Button>
        </Form>
      )}
    </Card>
  );
}

export function LoginsCard() {
  const list = useList(LoginService.method.list, {});
  const end = useChange(LoginService.method.end, { changes: [LoginService] });
  return (
    <Card title="Logins" about="Where you are logged in." isFlush>
      {end.problem && (
        <div className="p-4">
          <ProblemNotice problem={end.problem} />
        </div>
      )}
      <List<OpenLogin>
        list={list}
        label="Logins"
        keyOf={({ id }) => id}
        columns={[
          {
            title: "Browser",
            cell: ({ userAgent, current }) => (
              <span className="flex items-center gap-2">
                <span className="line-clamp-1 break-all">{browserOf(userAgent)}</span>
                {current && <Badge tone="accent">This one</Badge>}
              </span>
            ),
          },
          { title: "Address", from: "sm", cell: ({ ipAddress }) => ipAddress },
          { title: "Used", cell: ({ lastUsedAt }) => <Ago at={lastUsedAt} /> },
          {
            title: "",
            isRight: true,
            cell: ({ id, current }) =>
              !current && (
                <Button size="small" isPending={end.isPending} onClick={() => end.run({ id })}>
                  End
                </Button>
              ),
          },
        ]}
        empty={<EmptyState icon={MonitorSmartphone} title="No logins" />}
      />
    </Card>
  );
}

/**
 * Browsers by a token of their user agent. The order matters, because most browsers also send tokens of later entries.
 */
const browsers = [
  ["Edg/", "Edge"],
  ["OPR/", "Opera"],
  ["Firefox/", "Firefox"],
  ["Chrome/", "Chrome"],
  ["Safari/", "Safari"],
] as const;
const systems = ["Android", "iPhone", "iPad", "Windows", "Mac OS X", "CrOS", "Linux"];

function browserOf(userAgent: string): string {
  const [, browser] = browsers.find(([token]) => userAgent.includes(token)) ?? [];
  if (browser === undefined) return userAgent;
  const system = systems.find((name) => userAgent.includes(name));
  return system === undefined ? browser : `${browser} on ${system.replace("Mac OS X", "macOS")}`;
}
