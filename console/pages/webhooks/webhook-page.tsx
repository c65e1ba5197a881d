import { useQuery } from "@connectrpc/connect-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { Send } from "lucide-react";
import { useState } from "react";
import { type Webhook, WebhookService } from "../../../src/gen/pilothouse/v1/webhook_pb.ts";
import { useChange } from "../../api/queries.ts";
import { pagePaths } from "../../app/page-paths.ts";
import { Button } from "../../ui/button.tsx";
import { Card, Properties, Property } from "../../ui/card.tsx";
import { Id } from "../../ui/copy.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { Page } from "../../ui/page.tsx";
import { SecretDialog } from "../../ui/secret-dialog.tsx";
import { Loaded, ProblemNotice } from "../../ui/state.tsx";
import { Ago, Until } from "../../ui/time.tsx";
import { toast } from "../../ui/toast.tsx";
import { DeliveryLog } from "./delivery-log.tsx";
import { EndpointForm } from "./endpoint-form.tsx";
import { EndpointBadge } from "./webhooks-page.tsx";

export function WebhookPage() {
  const { id } = useParams({ from: "/inside/webhooks/$id" });
  const endpoint = useQuery(WebhookService.method.get, { id });
  return (
    <Loaded query={endpoint} lines={8}>
      {(data) => <Endpoint endpoint={data} />}
    </Loaded>
  );
}

function Endpoint({ endpoint }: { readonly endpoint: Webhook }) {
  const { id, url, description, events, secretPrefix, graceExpiresAt, deliveryCounts: counts, createdAt } = endpoint;
  const givenUp = counts ? counts.dlq - endpoint.replayedCount : 0;
  const test = useChange(WebhookService.method.test, {
    changes: [WebhookService],
    onDone: () => toast("The test event was sent. Its delivery is in the log."),
  });
  return (
    <Page
      title="Webhook endpoint"
      heading={
        <>
          <span className="min-w-0 break-all">{url}</span>
          <EndpointBadge endpoint={endpoint} />
        </>
      }
      about={<Id value={id} />}
      actions={
        <Button kind="primary" isPending={test.isPending} onClick={() => test.run({ id })}>
          <Send size={14} aria-hidden="true" />
          Send a test
        </Button>
      }
    >
      <ProblemNotice problem={test.problem} />
      <Card title="Endpoint" actions={<EndpointActions endpoint={endpoint} />}>
        <Properties>
          {description !== "" && <Property name="Description">{description}</Property>}
          <Property name="Events">
            <span className="flex flex-wrap gap-x-3 gap-y-1 font-mono text-xs wrap-anywhere">
              {events.map((type) => (
                <span key={type}>{type}</span>
              ))}
            </span>
          </Property>
          <Property name="Secret">
            <code className="font-mono text-xs">{secretPrefix}…</code>
            {graceExpiresAt && (
              <span className="text-faint">
                {" "}
                the previous one also signs until <Until at={graceExpiresAt} />
              </span>
            )}
          </Property>
          <Property name="Deliveries">
            {counts &&
              `${counts.delivered} delivered, ${counts.pending} pending, ${counts.failed} retrying, ${givenUp} given up`}
            <span className="text-faint"> (tests are not counted)</span>
          </Property>
          <Property name="Created">
            <Ago at={createdAt} />
          </Property>
        </Properties>
      </Card>
      <DeliveryLog endpointId={id} canReplay={givenUp > 0} />
    </Page>
  );
}

function EndpointActions({ endpoint }: { readonly endpoint: Webhook }) {
  const { id, active } = endpoint;
  const [isEdited, setEdited] = useState(false);
  const navigate = useNavigate();
  const changes = [WebhookService];
  const update = useChange(WebhookService.method.update, { changes });
  const rotate = useChange(WebhookService.method.rotateSecret, { changes });
  const remove = useChange(WebhookService.method.delete, { onDone: () => navigate({ to: pagePaths.webhooks }) });
  return (
    <div className="flex flex-wrap gap-1.5">
      <Button size="small" onClick={() => setEdited(true)}>
        Edit
      </Button>
      <Button
        size="small"
        isPending={update.isPending}
        onClick={() => update.run({ id, active: !active, updateMask: { paths: ["active"] } })}
      >
        {active ? "Turn off" : "Turn on"}
      </Button>
      <Confirm
        trigger={<Button size="small">Rotate the secret</Button>}
        title="Rotate the secret?"
        action="Rotate"
        onConfirm={() => rotate.runAsync({ id })}
        problem={rotate.problem}
      >
        For 24 hours each delivery has the signatures of both secrets. Change the program within this time.
      </Confirm>
      <Confirm
        trigger={
          <Button size="small" kind="danger">
            Delete
          </Button>
        }
        title="Delete the endpoint?"
        action="Delete"
        onConfirm={() => remove.runAsync({ id })}
        problem={remove.problem}
      >
        Its pending deliveries are dropped, and its log is deleted.
      </Confirm>
      {rotate.data && <SecretDialog title="The new secret" secret={rotate.data.secret} onClose={rotate.reset} />}
      {isEdited && <EndpointForm endpoint={endpoint} onClose={() => setEdited(false)} />}
    </div>
  );
}
