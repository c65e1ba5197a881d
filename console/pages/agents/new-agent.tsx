import { useQuery } from "@connectrpc/connect-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { Plus, X } from "lucide-react";
import { useState } from "react";
import { AgentSessionService } from "../../../src/gen/pilothouse/v1/agent_session_pb.ts";
import { AgentTurnService } from "../../../src/gen/pilothouse/v1/agent_turn_pb.ts";
import { ProfileService } from "../../../src/gen/pilothouse/v1/profile_pb.ts";
import { type ApiProblem, toSentence } from "../../api/problem.ts";
import { useChange } from "../../api/queries.ts";
import { pagePaths } from "../../app/page-paths.ts";
import { Actions, Button, IconButton } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { SelectField, TextArea, TextField, textOf } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { ProblemNotice } from "../../ui/state.tsx";
import { tableOf } from "./table-schema.ts";

const splitWords = (text: string | undefined): string[] => text?.split(/[\s,]+/).filter(Boolean) ?? [];

/** Shows a problem, and where to add an LLM key if it concerns the key. */
export function AgentProblemNotice({ problem }: { readonly problem: ApiProblem | undefined }) {
  if (!problem?.slug.includes("llm")) return <ProblemNotice problem={problem} />;
  // The detail of a missing key names paths and headers of the API.
  const text =
    problem.slug === "byok-llm-required" ? "Agents need a key of an LLM provider." : toSentence(problem.detail);
  return (
    <ProblemNotice problem={problem}>
      {text}{" "}
      <Link to={pagePaths.settings} hash="llm" className="font-medium underline">
        Add an LLM key in the settings
      </Link>
    </ProblemNotice>
  );
}

/** Secrets of a form: rows of `secret_name`, `secret_value` and `secret_domains`. */
function variablesOf(form: FormData): Record<string, { value: string; domains: string[] }> {
  const [names, values, domains] = ["secret_name", "secret_value", "secret_domains"].map((name) =>
    form.getAll(name).map(String),
  );
  const rows = (names ?? []).map((name, index) => {
    const variable = { value: values?.[index] ?? "", domains: splitWords(domains?.[index]) };
    return [name.trim(), variable] as const;
  });
  return Object.fromEntries(rows.filter(([name]) => name !== ""));
}

export function NewAgent({ onClose }: { readonly onClose: () => void }) {
  const navigate = useNavigate();
  const [secrets, setSecrets] = useState<readonly number[]>([]);
  const profiles = useQuery(ProfileService.method.list, { limit: 100 });
  const create = useChange(AgentSessionService.method.create, { changes: [AgentSessionService] });
  const send = useChange(AgentTurnService.method.sendMessage, { changes: [AgentTurnService] });
  const end = useChange(AgentSessionService.method.destroy, { changes: [AgentSessionService] });
  const submit = (form: FormData): void => {
    const [task = "", model, profileId] = [textOf(form, "task"), textOf(form, "model"), textOf(form, "profile_id")];
    const request = {
      labels: { name: task.split("\n", 1)[0]?.slice(0, 80) ?? "" },
      variables: variablesOf(form),
      allowedDomains: splitWords(textOf(form, "domains")),
      ...(model !== undefined && { model }),
      ...(profileId !== undefined && { profileId }),
    };
    // A rejection is shown as the problem of its method.
    const start = async (): Promise<void> => {
      const { id } = await create.runAsync(request);
      await send.runAsync({ id, text: task, ...tableOf(textOf(form, "columns")) }).catch(async (error: unknown) => {
        // The form keeps the task. An agent without a message would only wait.
        await end.runAsync({ id });
        throw error;
      });
      await navigate({ to: pagePaths.agent, params: { id } });
    };
    start().catch(() => undefined);
  };
  return (
    <Dialog title="New agent" isOpen onClose={onClose}>
      <Form onSubmit={submit}>
        <TextArea
          label="Task"
          name="task"
          rows={4}
          placeholder="Open example.com and read its headline"
          maxLength={32_768}
          required
        />
        <TextField
          label="Columns of the result"
          name="columns"
          placeholder="Optional, such as name, price"
          hint="The agent answers with a table"
          maxLength={2_000}
          autoComplete="off"
        />
        <div className="grid gap-4 sm:grid-cols-2">
          <TextField label="Model" name="model" placeholder="Default of the account" problem={create.problem} />
          <SelectField label="Profile" name="profile_id" problem={create.problem}>
            <option value="">None</option>
            {profiles.data?.data.map(({ id, name, activeSessionId }) => (
              <option key={id} value={id} disabled={activeSessionId !== undefined}>
                {name}
                {activeSessionId !== undefined && " (in use)"}
              </option>
            ))}
          </SelectField>
        </div>
        <TextField
          label="Allowed hosts"
          name="domains"
          placeholder="All"
          hint="Such as example.com *.example.com"
          problem={create.problem}
        />
        {secrets.map((row) => (
          <SecretRow key={row} onRemove={() => setSecrets(secrets.filter((each) => each !== row))} />
        ))}
        <Button
          kind="quiet"
          size="small"
          className="self-start"
          onClick={() => setSecrets([...secrets, (secrets.at(-1) ?? 0) + 1])}
        >
          <Plus size={13} aria-hidden="true" />
          Add a secret
        </Button>
        <AgentProblemNotice problem={create.problem ?? send.problem} />
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" isPending={create.isPending || send.isPending}>
            Start
          </Button>
        </Actions>
      </Form>
    </Dialog>
  );
}

/** A secret that the agent types without seeing it. */
function SecretRow({ onRemove }: { readonly onRemove: () => void }) {
  return (
    <fieldset className="relative grid gap-3 rounded-lg border border-line p-3 sm:grid-cols-3">
      <legend className="sr-only">Secret</legend>
      <TextField label="Secret" name="secret_name" placeholder="password" pattern="[A-Za-z_][A-Za-z0-9_]*" required />
      <TextField label="Value" name="secret_value" type="password" autoComplete="off" required />
      <TextField label="For the hosts" name="secret_domains" placeholder="example.com" required />
      <IconButton
        label="Remove the secret"
        size="small"
        className="!absolute -top-3 -right-2 bg-raised"
        onClick={onRemove}
      >
        <X size={13} aria-hidden="true" />
      </IconButton>
    </fieldset>
  );
}
