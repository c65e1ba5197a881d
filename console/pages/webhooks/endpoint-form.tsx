import { type Webhook, WebhookService } from "../../../src/gen/pilothouse/v1/webhook_pb.ts";
import { useChange } from "../../api/queries.ts";
import { Actions, Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { CheckField, TextField, textOf } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { SecretDialog } from "../../ui/secret-dialog.tsx";
import { ProblemNotice } from "../../ui/state.tsx";
import { eventTypes } from "./event-types.ts";

interface EndpointFormProps {
  readonly endpoint?: Webhook;
  readonly onClose: () => void;
}

/** Form of a new or an existing endpoint. */
export function EndpointForm({ endpoint, onClose }: EndpointFormProps) {
  const create = useChange(WebhookService.method.create, { changes: [WebhookService] });
  const update = useChange(WebhookService.method.update, { changes: [WebhookService], onDone: onClose });
  const { problem, isPending } = endpoint ? update : create;
  const secret = create.data?.secret;
  if (secret !== undefined)
    return <SecretDialog title="Signing secret of the endpoint" secret={secret} onClose={onClose} />;
  const submit = (form: FormData): void => {
    const url = textOf(form, "url") ?? "";
    const [events, description = ""] = [form.getAll("event").map(String), textOf(form, "description")];
    const updateMask = { paths: ["url", "events", "description"] };
    if (endpoint) update.run({ id: endpoint.id, url, events, description, updateMask });
    else create.run({ url, events, ...(description !== "" && { description }) });
  };
  return (
    <Dialog title={endpoint ? "Edit the endpoint" : "New endpoint"} isOpen onClose={onClose}>
      <Form onSubmit={submit}>
        <TextField
          label="Address"
          name="url"
          type="url"
          defaultValue={endpoint?.url}
          placeholder="https://example.com/hooks"
          hint="It must be reachable from the service. For a program on your machine, use the command on the page Webhooks"
          problem={problem}
          required
        />
        <TextField
          label="Description"
          placeholder="Optional"
          name="description"
          defaultValue={endpoint?.description}
          maxLength={500}
          problem={problem}
        />
        <fieldset>
          <legend className="mb-2 text-sm font-medium">Events</legend>
          <div className="flex max-h-60 flex-col gap-2.5 overflow-auto rounded-lg border border-line p-3">
            {eventTypes.map(([type, about]) => (
              <CheckField
                key={type}
                name="event"
                value={type}
                defaultChecked={endpoint ? endpoint.events.includes(type) : type.startsWith("session.")}
                label={<code className="font-mono text-xs">{type}</code>}
                hint={about}
              />
            ))}
          </div>
        </fieldset>
        <ProblemNotice problem={problem} fields={["url", "description"]} />
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" isPending={isPending}>
            {endpoint ? "Save" : "Create the endpoint"}
          </Button>
        </Actions>
      </Form>
    </Dialog>
  );
}
