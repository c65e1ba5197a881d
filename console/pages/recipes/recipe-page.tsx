import { toJson } from "@bufbuild/protobuf";
import { useQuery } from "@connectrpc/connect-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { Play } from "lucide-react";
import { useState } from "react";
import { AgentSessionService } from "../../../src/gen/pilothouse/v1/agent_session_pb.ts";
import { AgentTurnService } from "../../../src/gen/pilothouse/v1/agent_turn_pb.ts";
import {
  type Recipe,
  RecipeService,
  type RecipeStep,
  RecipeStepSchema,
} from "../../../src/gen/pilothouse/v1/recipe_pb.ts";
import { useChange } from "../../api/queries.ts";
import { pagePaths } from "../../app/page-paths.ts";
import { Actions, Button } from "../../ui/button.tsx";
import { Card, Properties, Property } from "../../ui/card.tsx";
import { Code, Id } from "../../ui/copy.tsx";
import { Confirm, Dialog } from "../../ui/dialog.tsx";
import { TextField, textOf } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { Page } from "../../ui/page.tsx";
import { Loaded } from "../../ui/state.tsx";
import { DateOf } from "../../ui/time.tsx";
import { AgentProblemNotice } from "../agents/new-agent.tsx";

export function RecipePage() {
  const { id } = useParams({ from: "/inside/recipes/$id" });
  const recipe = useQuery(RecipeService.method.get, { id });
  return <Loaded query={recipe}>{(data) => <RecipeDetails recipe={data} />}</Loaded>;
}

function RecipeDetails({ recipe }: { readonly recipe: Recipe }) {
  const { id, name, description, parameters, startUrl, steps, createdAt } = recipe;
  const [isRunning, setRunning] = useState(false);
  const navigate = useNavigate();
  const remove = useChange(RecipeService.method.delete, {
    changes: [RecipeService],
    onDone: () => navigate({ to: pagePaths.recipes }),
  });
  return (
    <Page
      title={name}
      about={<Id value={id} />}
      actions={
        <>
          <Confirm
            trigger={<Button kind="danger">Delete</Button>}
            title={`Delete ${name}?`}
            action="Delete"
            onConfirm={() => remove.runAsync({ id })}
            problem={remove.problem}
          >
            Runs that have started continue.
          </Confirm>
          <Button kind="primary" onClick={() => setRunning(true)}>
            <Play size={14} aria-hidden="true" />
            Run
          </Button>
        </>
      }
    >
      <Card title="Recipe">
        <Properties>
          {description !== undefined && <Property name="Purpose">{description}</Property>}
          {startUrl !== undefined && <Property name="First address">{startUrl}</Property>}
          <Property name="Parameters">
            {parameters.length === 0 ? "None" : parameters.map((parameter) => parameter.name).join(", ")}
          </Property>
          <Property name="Created">
            <DateOf at={createdAt} />
          </Property>
        </Properties>
      </Card>
      <Card title="Steps" isFlush>
        <ol>
          {steps.map((step, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: steps have no other identity, and never change
            <li key={index} className="border-b border-line px-4 py-3 last:border-0">
              <StepDetails step={step} number={index + 1} />
            </li>
          ))}
        </ol>
      </Card>
      {isRunning && <RunRecipe recipe={recipe} onClose={() => setRunning(false)} />}
    </Page>
  );
}

function StepDetails({ step, number }: { readonly step: RecipeStep; readonly number: number }) {
  const kind = step.do.case ?? "unknown";
  return (
    <details className="text-sm">
      <summary className="flex gap-3 rounded-md">
        <span className="w-5 text-right text-faint tabular-nums">{number}</span>
        <code className="font-mono text-xs leading-5">{kind}</code>
        <span className="min-w-0 flex-1 truncate text-soft">{step.description}</span>
      </summary>
      <Code text={JSON.stringify(toJson(RecipeStepSchema, step), null, 2)} label={`step ${number}`} className="mt-2" />
    </details>
  );
}

function RunRecipe({ recipe, onClose }: { readonly recipe: Recipe; readonly onClose: () => void }) {
  const { id: recipeId, name, parameters } = recipe;
  const navigate = useNavigate();
  const create = useChange(AgentSessionService.method.create, { changes: [AgentSessionService] });
  const send = useChange(AgentTurnService.method.sendMessage, { changes: [AgentTurnService] });
  const submit = (form: FormData): void => {
    const values = parameters.flatMap((parameter) => {
      const value = textOf(form, parameter.name);
      return value === undefined ? [] : [[parameter.name, value] as const];
    });
    const run = async (): Promise<void> => {
      const { id } = await create.runAsync({
        recipeId,
        recipeParameters: Object.fromEntries(values),
        labels: { name },
      });
      await send.runAsync({ id, text: "Run the recipe." }).catch(() => undefined);
      await navigate({ to: pagePaths.agent, params: { id } });
    };
    run().catch(() => undefined);
  };
  return (
    <Dialog title={`Run ${name}`} isOpen onClose={onClose}>
      <Form onSubmit={submit}>
        {parameters.length === 0 && <p className="text-sm text-soft">The recipe has no parameters.</p>}
        {parameters.map(({ name: parameter, description, value }) => (
          <TextField
            key={parameter}
            label={parameter}
            name={parameter}
            hint={description}
            defaultValue={value}
            required={value === undefined}
          />
        ))}
        <AgentProblemNotice problem={create.problem ?? send.problem} />
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" isPending={create.isPending || send.isPending}>
            Run
          </Button>
        </Actions>
      </Form>
    </Dialog>
  );
}
