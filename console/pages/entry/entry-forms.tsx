import { useQuery } from "@connectrpc/connect-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { MailCheck } from "lucide-react";
import { useState } from "react";
import { AuthService } from "../../../src/gen/pilothouse/v1/auth_pb.ts";
import { LegalService } from "../../../src/gen/pilothouse/v1/legal_pb.ts";
import { type ApiProblem, problemOf } from "../../api/problem.ts";
import { useChange } from "../../api/queries.ts";
import { RequestRefused } from "../../api/session-login.ts";
import { pagePaths } from "../../app/page-paths.ts";
import { Button } from "../../ui/button.tsx";
import { CheckField, TextField, textOf } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { EmptyState, ProblemNotice } from "../../ui/state.tsx";
import { useBeginLogin } from "./begin-login.ts";
import { EntryLayout } from "./entry-layout.tsx";
import { takeLinkToken } from "./link-token.ts";

const linkClass = "font-medium text-accent-text hover:underline";
const passwordHint = "10 characters or more, and hard to guess";

/** Form fields for a new user: name, address and password. */
export function NewPersonFields({ problem }: { readonly problem: ApiProblem | undefined }) {
  return (
    <>
      <TextField label="Your name" name="name" autoComplete="name" maxLength={200} problem={problem} required />
      <TextField label="E-mail address" name="email" type="email" autoComplete="username" problem={problem} required />
      <TextField
        label="Password"
        name="password"
        type="password"
        autoComplete="new-password"
        minLength={10}
        maxLength={256}
        hint={passwordHint}
        problem={problem}
        required
      />
    </>
  );
}

export function LogInPage() {
  const { to } = getRouteApi(pagePaths.logIn).useSearch();
  const login = useBeginLogin(to);
  const [mode, setMode] = useState<"password" | "link">("password");
  const logIn = useChange(AuthService.method.logIn, { onDone: ({ refreshToken }) => login.begin(refreshToken) });
  const sendLink = useChange(AuthService.method.requestMagicLink);
  const isByLink = mode === "link";
  if (sendLink.data) {
    return (
      <EntryLayout title="Check your e-mail">
        <MailSent email={sendLink.data.email}>It has a link that logs you in. The link works for 15 minutes.</MailSent>
      </EntryLayout>
    );
  }
  const submit = (form: FormData): void => {
    const email = textOf(form, "email") ?? "";
    if (isByLink) sendLink.run({ email });
    else logIn.run({ email, password: String(form.get("password") ?? "") });
  };
  return (
    <EntryLayout
      title="Log in"
      footer={
        <>
          <p>
            New here?{" "}
            <Link to={pagePaths.signUp} className={linkClass}>
              Create an account
            </Link>
          </p>
          <Link to={pagePaths.forgotten} className={linkClass}>
            Forgot the password?
          </Link>
        </>
      }
    >
      <Form onSubmit={submit}>
        <TextField label="E-mail address" name="email" type="email" autoComplete="username" required />
        {!isByLink && (
          <TextField label="Password" name="password" type="password" autoComplete="current-password" required />
        )}
        <ProblemNotice problem={logIn.problem ?? sendLink.problem ?? login.problem} />
        <Button
          type="submit"
          kind="primary"
          size="large"
          isPending={logIn.isPending || sendLink.isPending || login.isPending}
        >
          {isByLink ? "E-mail me a link" : "Log in"}
        </Button>
        <Button kind="quiet" onClick={() => setMode(isByLink ? "password" : "link")}>
          {isByLink ? "Use a password" : "Log in without a password"}
        </Button>
      </Form>
    </EntryLayout>
  );
}

export function MailSent({ email, children }: { readonly email: string; readonly children: string }) {
  return (
    <EmptyState icon={MailCheck} title={`We have sent an e-mail to ${email}`}>
      {children}
    </EmptyState>
  );
}

export function SignUpPage() {
  const terms = useQuery(LegalService.method.getCurrentLegal, {}, { retry: false });
  const signUp = useChange(AuthService.method.signUp);
  if (signUp.data) {
    return (
      <EntryLayout title="Check your e-mail">
        <MailSent email={signUp.data.email}>Open its link to verify the address. Then you can log in.</MailSent>
      </EntryLayout>
    );
  }
  const submit = (form: FormData): void => {
    const [name, accountName] = [textOf(form, "name"), textOf(form, "account_name")];
    signUp.run({
      email: textOf(form, "email") ?? "",
      password: String(form.get("password") ?? ""),
      ...(name !== undefined && { name }),
      ...(accountName !== undefined && { accountName }),
      ...(terms.data && { acceptedRevisionId: terms.data.revisionId }),
    });
  };
  return (
    <EntryLayout
      title="Create an account"
      footer={
        <p>
          Signed up already?{" "}
          <Link to={pagePaths.logIn} className={linkClass}>
            Log in
          </Link>
        </p>
      }
    >
      <Form onSubmit={submit}>
        <NewPersonFields problem={signUp.problem} />
        <TextField
          label="Company or team"
          name="account_name"
          autoComplete="organization"
          hint="Optional"
          maxLength={200}
        />
        {terms.data && (
          <CheckField
            required
            label={
              <>
                I accept the{" "}
                <a href={terms.data.url} target="_blank" rel="noreferrer" className={linkClass}>
                  terms
                </a>
              </>
            }
          />
        )}
        <ProblemNotice problem={signUp.problem} />
        <Button type="submit" kind="primary" size="large" isPending={signUp.isPending}>
          Create the account
        </Button>
      </Form>
    </EntryLayout>
  );
}

export function ForgottenPage() {
  const request = useChange(AuthService.method.requestPasswordReset);
  return (
    <EntryLayout
      title="Reset the password"
      footer={
        <Link to={pagePaths.logIn} className={linkClass}>
          Back to the login
        </Link>
      }
    >
      {request.data ? (
        <MailSent email={request.data.email}>
          If the address has a user, the e-mail has a link for a new password.
        </MailSent>
      ) : (
        <Form onSubmit={(form) => request.run({ email: textOf(form, "email") ?? "" })}>
          <TextField label="E-mail address" name="email" type="email" autoComplete="username" required />
          <ProblemNotice problem={request.problem} />
          <Button type="submit" kind="primary" size="large" isPending={request.isPending}>
            Send a link
          </Button>
        </Form>
      )}
    </EntryLayout>
  );
}

/** Creates the first owner. Not a method of the API, because only this page of a new service may call it. */
async function createOwner(body: Record<string, string>): Promise<string> {
  const answer = await fetch("/console/first-run", {
    method: "POST",
    headers: { "content-type": "application/json", "x-console": "1" },
    body: JSON.stringify(body),
  });
  const content = await answer.json();
  if (!answer.ok) throw new RequestRefused(content);
  return content.refresh_token;
}

export function FirstRunPage() {
  const [token] = useState(takeLinkToken);
  const [problem, setProblem] = useState<ApiProblem>();
  const [isPending, setPending] = useState(false);
  const login = useBeginLogin();
  const submit = (form: FormData): void => {
    setPending(true);
    const [email = "", name = ""] = [textOf(form, "email"), textOf(form, "name")];
    createOwner({ token, email, name, password: String(form.get("password") ?? "") })
      .then(login.begin, (error) => setProblem(problemOf(error)))
      .finally(() => setPending(false));
  };
  return (
    <EntryLayout
      title="Welcome aboard"
      about="You are the first person here. Create your user, and this service is yours."
      footer={
        <p>
          The service has an owner already?{" "}
          <Link to={pagePaths.logIn} className={linkClass}>
            Log in
          </Link>
        </p>
      }
    >
      <Form onSubmit={submit}>
        <NewPersonFields problem={problem} />
        <ProblemNotice problem={problem ?? login.problem} />
        <Button type="submit" kind="primary" size="large" isPending={isPending || login.isPending}>
          Become the owner
        </Button>
      </Form>
    </EntryLayout>
  );
}
