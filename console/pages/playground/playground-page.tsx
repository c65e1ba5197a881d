import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { useQuery } from "@connectrpc/connect-query";
import { useMutation } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { Play } from "lucide-react";
import { useState } from "react";
import { SessionService } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { problemOf } from "../../api/problem.ts";
import { requestRaw } from "../../api/raw-files.ts";
import { pagePaths } from "../../app/page-paths.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Code } from "../../ui/copy.tsx";
import { SelectField } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { Page } from "../../ui/page.tsx";
import { Loaded, ProblemNotice } from "../../ui/state.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { LiveView } from "../sessions/live-view.tsx";
import { titleOf } from "../sessions/session-words.tsx";
import { type PlaygroundAction, playgroundActions, withValue } from "./actions.ts";
import { ResponseCard } from "./answer.tsx";
import { RequestFields } from "./request-fields.tsx";
import { pathOf, snippetLanguages } from "./snippets.ts";

export function PlaygroundPage() {
  const { id } = useParams({ from: "/inside/sessions/$id/playground" });
  const session = useQuery(SessionService.method.get, { id });
  return (
    <Loaded query={session} lines={8}>
      {(data) => (
        <Page
          title="Playground"
          about={
            <>
              Try each action in{" "}
              <Link to={pagePaths.session} params={{ id }} className="text-accent-text underline">
                {titleOf(data)}
              </Link>
              , and copy the code that does it.
            </>
          }
        >
          <div className="grid items-start gap-5 lg:grid-cols-[minmax(0,1fr)_26rem]">
            <LiveView
              sessionId={id}
              className="h-[45dvh] min-h-72 lg:sticky lg:top-8 lg:h-[calc(100dvh-11rem)] lg:min-h-96"
            />
            <Playground sessionId={id} />
          </div>
        </Page>
      )}
    </Loaded>
  );
}

const groups = [...new Set(playgroundActions.map(({ group }) => group))];

function Playground({ sessionId }: { readonly sessionId: string }) {
  const [[action, body], setRequest] = useState<readonly [PlaygroundAction | undefined, JsonObject]>(() => {
    const [first] = playgroundActions;
    return [first, first?.body ?? {}];
  });
  const run = useMutation({
    mutationFn: async (chosen: PlaygroundAction): Promise<JsonValue> => {
      const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
      const answer = await requestRaw(pathOf(chosen, sessionId), chosen.verb === "POST" ? init : {});
      return answer.json();
    },
  });
  const choose = (id: string): void => {
    const chosen = playgroundActions.find((each) => each.id === id);
    setRequest([chosen, chosen?.body ?? {}]);
    run.reset();
  };
  if (!action) return null;
  const problem = run.error ? problemOf(run.error) : undefined;
  const change = (path: readonly string[], value: JsonValue | undefined): void =>
    setRequest([action, withValue(body, path, value)]);
  const fieldsOf = { body, problem, onChange: change };
  return (
    <div className="flex min-w-0 flex-col gap-5">
      <Card>
        <Form key={action.id} label="Request" onSubmit={() => run.mutate(action)}>
          <SelectField label="Action" value={action.id} onChange={({ target }) => choose(target.value)}>
            {groups.map((group) => (
              <optgroup key={group} label={group}>
                {playgroundActions
                  .filter((each) => each.group === group)
                  .map(({ id, title }) => (
                    <option key={id} value={id}>
                      {title}
                    </option>
                  ))}
              </optgroup>
            ))}
          </SelectField>
          <RequestFields fields={action.fields} {...fieldsOf} />
          {action.moreFields.length > 0 && (
            <details>
              <summary className="w-fit rounded text-sm text-soft hover:text-ink">More options</summary>
              <div className="mt-3">
                <RequestFields fields={action.moreFields} {...fieldsOf} />
              </div>
            </details>
          )}
          <ProblemNotice problem={problem} />
          <Button type="submit" kind="primary" className="self-end" isPending={run.isPending}>
            <Play size={14} aria-hidden="true" />
            Run
          </Button>
        </Form>
      </Card>
      {run.data !== undefined && <ResponseCard json={run.data} />}
      <Card title="Code" about="The request of the form, with an API key in PILOTHOUSE_API_KEY.">
        <Tabs
          label="Language"
          items={snippetLanguages.map(([title, write]) => ({
            id: title,
            title,
            content: () => (
              <Code text={write({ action, body, sessionId, baseUrl: location.origin })} label={`${title} code`} />
            ),
          }))}
        />
      </Card>
    </div>
  );
}
