import { Link } from "@tanstack/react-router";
import { Plus, Webhook as WebhookIcon } from "lucide-react";
import { useState } from "react";
import { type Webhook, WebhookService } from "../../../src/gen/pilothouse/v1/webhook_pb.ts";
import { useList } from "../../api/lists.ts";
import { pagePaths } from "../../app/page-paths.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Code } from "../../ui/copy.tsx";
import { List } from "../../ui/list.tsx";
import { Page } from "../../ui/page.tsx";
import { EmptyState } from "../../ui/state.tsx";
import { Ago } from "../../ui/time.tsx";
import { EndpointForm } from "./endpoint-form.tsx";

/** State of an endpoint in a word. */
export function EndpointBadge({ endpoint: { active, consecutiveFailures } }: { readonly endpoint: Webhook }) {
  if (!active) return <Badge>Off</Badge>;
  if (consecutiveFailures > 0) return <Badge tone="bad">{consecutiveFailures} failing</Badge>;
  return <Badge tone="good">Active</Badge>;
}

export function WebhooksPage() {
  const [isCreating, setCreating] = useState(false);
  const list = useList(WebhookService.method.list, {});
  const createButton = (
    <Button kind="primary" onClick={() => setCreating(true)}>
      <Plus size={15} aria-hidden="true" />
      New endpoint
    </Button>
  );
  return (
    <Page title="Webhooks" about="Signed events for your programs, retried until they arrive." actions={createButton}>
      <Card isFlush>
        <List<Webhook>
          list={list}
          label="Webhook endpoints"
          keyOf={({ id }) => id}
          columns={[
            {
              title: "Endpoint",
              cell: ({ id, url, description }) => (
                <span className="block min-w-0">
                  <Link to={pagePaths.webhook} params={{ id }} className="font-medium break-all hover:underline">
                    {url}
                  </Link>
                  {description !== "" && <span className="block text-xs text-faint">{description}</span>}
                </span>
              ),
            },
            { title: "Status", cell: (endpoint) => <EndpointBadge endpoint={endpoint} /> },
            {
              title: "Events",
              from: "lg",
              cell: ({ events }) => <span title={events.join("\n")}>{events.length}</span>,
            },
            {
              title: "Delivered",
              from: "sm",
              isRight: true,
              cell: ({ deliveryCounts }) => (deliveryCounts?.delivered ?? 0).toLocaleString(),
            },
            { title: "Created", from: "lg", isRight: true, cell: ({ createdAt }) => <Ago at={createdAt} /> },
          ]}
          empty={
            <EmptyState icon={WebhookIcon} title="No endpoints yet" action={createButton}>
              An endpoint is an https address that receives the events it subscribes to.
            </EmptyState>
          }
        />
      </Card>
      <Card
        title="Without a public address"
        about="Forwards events to a program on your machine, signed in the same way."
      >
        <Code
          text={`PILOTHOUSE_URL=${location.origin} PILOTHOUSE_API_KEY=phk_... npm run listen -- --forward http://127.0.0.1:3000/hooks`}
          label="the listen command"
        />
      </Card>
      {isCreating && <EndpointForm onClose={() => setCreating(false)} />}
    </Page>
  );
}
