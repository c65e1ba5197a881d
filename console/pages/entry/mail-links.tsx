import type { DescMessage, DescMethodUnary, MessageShape } from "@bufbuild/protobuf";
import { Link } from "@tanstack/react-router";
import { CircleCheck, Link2Off } from "lucide-react";
import { useState } from "react";
import { AuthService } from "../../../src/gen/pilothouse/v1/auth_pb.ts";
import { CredentialsService } from "../../../src/gen/pilothouse/v1/credentials_pb.ts";
import { DeletionService } from "../../../src/gen/pilothouse/v1/deletion_pb.ts";
import { useChange } from "../../api/queries.ts";
import { pagePaths } from "../../app/page-paths.ts";
import { Button, buttonClass } from "../../ui/button.tsx";
import { TextField, textOf } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { EmptyState, ProblemNotice } from "../../ui/state.tsx";
import { useBeginLogin } from "./begin-login.ts";
import { MailSent, NewPersonFields } from "./entry-forms.tsx";
import { EntryLayout } from "./entry-layout.tsx";
import { takeLinkToken } from "./link-token.ts";

function IncompleteLink() {
  return (
    <EmptyState icon={Link2Off} title="This link is not complete">
      Open the link in the e-mail, or copy all of it.
    </EmptyState>
  );
}

function Done({ children }: { readonly children: string }) {
  return (
    <EmptyState
      icon={CircleCheck}
      title={children}
      action={
        <Link to={pagePaths.logIn} className={buttonClass("primary")}>
          Log in
        </Link>
      }
    />
  );
}

interface ActionProps<I extends DescMessage, O extends DescMessage> {
  readonly title: string;
  readonly about: string;
  readonly button: string;
  readonly done: string;
  readonly method: DescMethodUnary<I, O>;
  /** Returns the request for the token and the form. */
  readonly request: (token: string, form: FormData) => MessageShape<I> | object;
  /** `optional` shows the field if the method requires a password. */
  readonly password?: "required" | "optional";
}

/** A page that uses the token of a link when a button is pressed, because mail programs open links by themselves. */
function LinkAction<I extends DescMessage, O extends DescMessage>(props: ActionProps<I, O>) {
  const { title, about, button, done, method, request, password } = props;
  const [token] = useState(takeLinkToken);
  const action = useChange(method);
  const needsPassword =
    password === "required" || action.problem?.faults.some(({ field }) => field === "password") === true;
  return (
    <EntryLayout title={title} {...(!action.isDone && { about })}>
      {token === "" ? (
        <IncompleteLink />
      ) : action.isDone ? (
        <Done>{done}</Done>
      ) : (
        // Cast: the pages below pass the fields of their methods.
        <Form onSubmit={(form) => action.run(request(token, form) as Parameters<typeof action.run>[0])}>
          {needsPassword && (
            <TextField
              label="New password"
              name="password"
              type="password"
              autoComplete="new-password"
              hint="10 characters or more, and hard to guess"
              problem={action.problem}
              required
            />
          )}
          <ProblemNotice problem={action.problem} />
          <Button type="submit" kind="primary" size="large" isPending={action.isPending}>
            {button}
          </Button>
        </Form>
      )}
    </EntryLayout>
  );
}

const withPassword = (token: string, form: FormData): object => {
  const password = form.get("password");
  return typeof password === "string" ? { token, password } : { token };
};
const onlyToken = (token: string): object => ({ token });

export const VerifyEmailPage = () => (
  <LinkAction
    title="Verify your address"
    about="This confirms that the address is yours. Then you can log in."
    button="Verify the address"
    done="The address is verified"
    method={AuthService.method.verifyEmail}
    request={withPassword}
    password="optional"
  />
);

export const PasswordResetPage = () => (
  <LinkAction
    title="Set a new password"
    about="All your logins end. The new password works immediately."
    button="Set the password"
    done="The new password is set"
    method={AuthService.method.confirmPasswordReset}
    request={withPassword}
    password="required"
  />
);

export const EmailChangePage = () => (
  <LinkAction
    title="Confirm your new address"
    about="You will log in with the address that received the e-mail. Your logins on other devices end."
    button="Confirm the address"
    done="The address is changed"
    method={CredentialsService.method.confirmEmailChange}
    request={onlyToken}
  />
);

export const UndoEmailChangePage = () => (
  <LinkAction
    title="Undo the change of your address"
    about="The address that received the e-mail becomes yours again. All logins end, and the password is removed."
    button="Undo the change"
    done="The address is yours again. An e-mail has a link to set a new password"
    method={CredentialsService.method.undoEmailChange}
    request={onlyToken}
  />
);

export const AccountRestorePage = () => (
  <LinkAction
    title="Restore the account"
    about="Its keys and logins work again. Sessions and invites that have ended stay ended."
    button="Restore the account"
    done="The account is restored"
    method={DeletionService.method.restoreAccount}
    request={onlyToken}
  />
);

export const RevokeKeysPage = () => (
  <LinkAction
    title="Revoke your API keys"
    about="All keys that you created are revoked at once, in every account. Programs that use them stop working."
    button="Revoke my keys"
    done="Your keys are revoked"
    method={AuthService.method.revokeKeys}
    request={onlyToken}
  />
);

export function MagicLinkPage() {
  const [token] = useState(takeLinkToken);
  const login = useBeginLogin();
  const consume = useChange(AuthService.method.consumeMagicLink, {
    onDone: ({ refreshToken }) => login.begin(refreshToken),
  });
  return (
    <EntryLayout title="Log in" about="The link works once.">
      {token === "" ? (
        <IncompleteLink />
      ) : (
        <Form onSubmit={() => consume.run({ token })}>
          <ProblemNotice problem={consume.problem ?? login.problem} />
          <Button type="submit" kind="primary" size="large" isPending={consume.isPending || login.isPending}>
            Log in
          </Button>
        </Form>
      )}
    </EntryLayout>
  );
}

export function InvitePage() {
  const [token] = useState(takeLinkToken);
  const [isNew, setNew] = useState(true);
  const login = useBeginLogin();
  const signUp = useChange(AuthService.method.signUp);
  const logIn = useChange(AuthService.method.logIn, { onDone: ({ refreshToken }) => login.begin(refreshToken) });
  if (signUp.data) {
    return (
      <EntryLayout title="One more step">
        <MailSent email={signUp.data.email}>Open its link to verify your address. It adds you to the team.</MailSent>
      </EntryLayout>
    );
  }
  const join = (form: FormData): void => {
    const person = { email: textOf(form, "email") ?? "", password: String(form.get("password") ?? "") };
    const name = textOf(form, "name");
    if (isNew) signUp.run({ ...person, inviteToken: token, ...(name !== undefined && { name }) });
    else logIn.run({ ...person, inviteToken: token });
  };
  return (
    <EntryLayout title="Join a team" about="The invite is for the address that received the e-mail. It works once.">
      {token === "" ? (
        <IncompleteLink />
      ) : (
        <Form onSubmit={join} key={String(isNew)}>
          {isNew ? (
            <NewPersonFields problem={signUp.problem} />
          ) : (
            <>
              <TextField label="E-mail address" name="email" type="email" autoComplete="username" required />
              <TextField label="Password" name="password" type="password" autoComplete="current-password" required />
            </>
          )}
          <ProblemNotice problem={isNew ? signUp.problem : (logIn.problem ?? login.problem)} />
          <Button
            type="submit"
            kind="primary"
            size="large"
            isPending={signUp.isPending || logIn.isPending || login.isPending}
          >
            {isNew ? "Sign up and join" : "Log in and join"}
          </Button>
          <Button kind="quiet" onClick={() => setNew(!isNew)}>
            {isNew ? "Already have a login? Join with it" : "New here? Sign up"}
          </Button>
        </Form>
      )}
    </EntryLayout>
  );
}
