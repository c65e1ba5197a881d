import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ListChecks, Plus } from "lucide-react";
import { useState } from "react";
import { RecipeService, type RecipeSummary } from "../../../src/gen/pilothouse/v1/recipe_pb.ts";
import { useList } from "../../api/lists.ts";
import { problemOf } from "../../api/problem.ts";
import { keyOf } from "../../api/queries.ts";
import { requestRaw } from "../../api/raw-files.ts";
import { pagePaths } from "../../app/page-paths.ts";
import { Actions, Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { TextArea, TextField, textOf } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { List } from "../../ui/list.tsx";
import { Page } from "../../ui/page.tsx";
import { EmptyState, ProblemNotice } from "../../ui/state.tsx";
import { Ago } from "../../ui/time.tsx";

export function RecipesPage() {
  const [isCreating, setCreating] = useState(false);
  const list = useList(RecipeService.method.list, {});
  const createButton = (
    <Button kind="primary" onClick={() => setCreating(true)}>
      <Plus size={15} aria-hidden="true" />
      New recipe
    </Button>
  );
  return (
    <Page
      title="Recipes"
      about="Fixed steps with parameters. Where a step no longer fits the page, a model repairs it."
      actions={createButton}
    >
      <Card isFlush>
        <List<RecipeSummary>
          list={list}
          label="Recipes"
          keyOf={({ id }) => id}
          columns={[
            {
              title: "Name",
              cell: ({ id, name, description }) => (
                <span className="block min-w-0">
                  <Link to={pagePaths.recipe} params={{ id }} className="font-medium hover:underline">
                    {name}
                  </Link>
                  {description !== undefined && <span className="line-clamp-1 text-xs text-faint">{description}</span>}
                </span>
              ),
            },
            { title: "Steps", isRight: true, cell: ({ stepCount }) => stepCount },
            { title: "Created", isRight: true, cell: ({ createdAt }) => <Ago at={createdAt} /> },
          ]}
          empty={
            <EmptyState icon={ListChecks} title="No recipes yet" action={createButton}>
              A recipe repeats the same steps without a model, until the page changes.
            </EmptyState>
          }
        />
      </Card>
      {isCreating && <NewRecipe onClose={() => setCreating(false)} />}
    </Page>
  );
}

const example = `[
  { "do": { "kind": "interact", "action": { "kind": "type", "selector": "#name", "text": "{{name}}" } } },
  { "do": { "kind": "interact", "action": { "kind": "tap", "selector": "#go" } } }
]`;

/** Creates a recipe by the REST API, because people write recipes in its JSON. */
function NewRecipe({ onClose }: { readonly onClose: () => void }) {
  const client = useQueryClient();
  const [fault, setFault] = useState<string>();
  const create = useMutation({
    mutationFn: (body: object) =>
      requestRaw("/v1/recipes", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: keyOf(RecipeService) });
      onClose();
    },
  });
  const submit = (form: FormData): void => {
    try {
      const steps: unknown = JSON.parse(textOf(form, "steps") ?? "[]");
      const parameters =
        textOf(form, "parameters")
          ?.split(/[\s,]+/)
          .map((name) => ({ name })) ?? [];
      setFault(undefined);
      create.mutate({
        name: textOf(form, "name"),
        description: textOf(form, "description"),
        start_url: textOf(form, "start_url"),
        parameters,
        steps,
      });
    } catch {
      setFault("The steps are not JSON.");
    }
  };
  return (
    <Dialog title="New recipe" isOpen onClose={onClose}>
      <Form onSubmit={submit}>
        <TextField label="Name" name="name" placeholder="Order tickets" maxLength={200} required />
        <TextField label="Purpose" name="description" hint="A model that repairs a step reads it" maxLength={2000} />
        <TextField label="First address" name="start_url" type="url" placeholder="https://example.com/" />
        <TextField
          label="Parameters"
          name="parameters"
          placeholder="name city"
          hint="Steps refer to them as {{name}}"
        />
        <TextArea
          label="Steps"
          name="steps"
          rows={7}
          defaultValue={example}
          className="font-mono !text-xs"
          spellCheck={false}
          required
        />
        {fault !== undefined && (
          <p role="alert" className="text-sm text-bad">
            {fault}
          </p>
        )}
        <ProblemNotice problem={create.error ? problemOf(create.error) : undefined} />
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" isPending={create.isPending}>
            Create
          </Button>
        </Actions>
      </Form>
    </Dialog>
  );
}
