import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { Inbox } from "lucide-react";
import { useState } from "react";
import {
  type WebhookDelivery,
  WebhookDeliveryStatus,
  WebhookService,
} from "../../../src/gen/pilothouse/v1/webhook_pb.ts";
import { useList } from "../../api/lists.ts";
import { useChange } from "../../api/queries.ts";
import { Badge, StateBadge, type States } from "../../ui/badge.tsx";
import { Actions, Button } from "../../ui/button.tsx";
import { Card, Properties, Property } from "../../ui/card.tsx";
import { Code, Id } from "../../ui/copy.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { List } from "../../ui/list.tsx";
import { EmptyState, ProblemNotice } from "../../ui/state.tsx";
import { Ago, Until } from "../../ui/time.tsx";
import { toast } from "../../ui/toast.tsx";

const testType = "test.ping";

/** Maximum age of replayed deliveries in milliseconds: the service keeps deliveries this long. */
const replayedMs = 30 * 86_400_000;

const states: States<WebhookDeliveryStatus> = {
  [WebhookDeliveryStatus.UNSPECIFIED]: ["Unknown", "neutral"],
  [WebhookDeliveryStatus.PENDING]: ["Pending", "accent"],
  [WebhookDeliveryStatus.DELIVERED]: ["Delivered", "good"],
  [WebhookDeliveryStatus.FAILED]: ["Retrying", "warn"],
  [WebhookDeliveryStatus.DLQ]: ["Given up", "bad"],
};

/** Texts for errors of attempts, and for the reasons why retries ended. */
const errors: Readonly<Record<string, string>> = {
  address_not_allowed: "The address is not on the public internet",
  name_not_resolved: "The host name does not exist",
  connection_refused: "The host refuses connections",
  unreachable: "The host cannot be reached",
  tls: "The certificate or TLS connection cannot be trusted",
  timeout: "No answer in time",
  too_large: "The answer is too large",
  connection_reset: "The connection was closed before an answer",
  not_http: "The host does not answer in HTTP",
  endpoint_inactive: "The endpoint is off",
};

const errorText = (error: string | undefined): string | undefined => error && (errors[error] ?? error);

interface StatusProps {
  readonly delivery: WebhookDelivery;
  /** Ids of deliveries that were sent again, as deliveries of their own. */
  readonly replayed: ReadonlySet<string | undefined>;
}

function DeliveryBadge({ delivery: { id, status }, replayed }: StatusProps) {
  if (status === WebhookDeliveryStatus.DLQ && replayed.has(id)) return <Badge>Sent again</Badge>;
  return <StateBadge states={states} state={status} />;
}

interface DeliveryLogProps {
  readonly endpointId: string;
  /** Whether deliveries were given up that were not sent again. */
  readonly canReplay: boolean;
}

export function DeliveryLog({ endpointId: id, canReplay }: DeliveryLogProps) {
  const [openId, setOpenId] = useState<string>();
  const list = useList(WebhookService.method.listDeliveries, { id });
  const open = list.data?.find((delivery) => delivery.id === openId);
  // Replays are newer than their originals, which are therefore on the same page or a later one.
  const replayed = new Set(list.data?.map(({ replayOf }) => replayOf));
  return (
    <Card title="Deliveries" actions={canReplay && <ReplayFailed id={id} />} isFlush>
      <List<WebhookDelivery>
        list={list}
        label="Deliveries"
        keyOf={(delivery) => delivery.id}
        columns={[
          {
            title: "Event",
            cell: (delivery) => (
              <button
                type="button"
                className="font-mono text-xs font-medium text-accent-text hover:underline"
                onClick={() => setOpenId(delivery.id)}
              >
                {delivery.eventType}
              </button>
            ),
          },
          { title: "Status", cell: (delivery) => <DeliveryBadge delivery={delivery} replayed={replayed} /> },
          {
            title: "Answer",
            from: "sm",
            cell: ({ responseStatus, reason, attempts }) => (
              <span className="text-soft">
                {responseStatus ?? errorText(reason ?? attempts.at(-1)?.error) ?? "none yet"}
              </span>
            ),
          },
          { title: "Attempts", from: "lg", isRight: true, cell: ({ attempts }) => attempts.length },
          { title: "Created", isRight: true, cell: ({ createdAt }) => <Ago at={createdAt} /> },
        ]}
        empty={
          <EmptyState icon={Inbox} title="Nothing was delivered yet">
            Send a test to see a delivery and its answer.
          </EmptyState>
        }
      />
      {open && (
        <DeliveryDialog endpointId={id} delivery={open} replayed={replayed} onClose={() => setOpenId(undefined)} />
      )}
    </Card>
  );
}

function ReplayFailed({ id }: { readonly id: string }) {
  const replay = useChange(WebhookService.method.replayFailedDeliveries, {
    changes: [WebhookService],
    onDone: ({ count }) => toast(count === 1 ? "1 delivery is sent again." : `${count} deliveries are sent again.`),
  });
  return (
    <Button
      size="small"
      isPending={replay.isPending}
      onClick={() => replay.run({ id, since: timestampFromMs(Date.now() - replayedMs) })}
    >
      Send all failed again
    </Button>
  );
}

interface DeliveryDialogProps extends StatusProps {
  readonly endpointId: string;
  readonly onClose: () => void;
}

function DeliveryDialog({ endpointId, delivery, replayed, onClose }: DeliveryDialogProps) {
  const { id, eventId, eventType, attempts, reason, nextAttemptAt } = delivery;
  const again = { changes: [WebhookService], onDone: onClose };
  const replay = useChange(WebhookService.method.replayDelivery, again);
  const test = useChange(WebhookService.method.test, again);
  return (
    <Dialog title={eventType} isOpen onClose={onClose}>
      <Properties>
        <Property name="Status">
          <DeliveryBadge delivery={delivery} replayed={replayed} />
          {reason !== undefined && reason !== "replayed" && <span className="ml-2 text-soft">{errorText(reason)}</span>}
        </Property>
        <Property name="Delivery">
          <Id value={id} />
        </Property>
        <Property name="Event">
          <Id value={eventId} />
        </Property>
        {nextAttemptAt && (
          <Property name="Next try">
            <Until at={nextAttemptAt} />
          </Property>
        )}
      </Properties>
      <ol className="mt-4 flex flex-col gap-3">
        {attempts.map(({ number, startedAt, durationMs, responseStatus, responseBody, error }) => (
          <li key={number} className="rounded-lg border border-line p-3 text-sm">
            <p className="flex flex-wrap justify-between gap-2">
              <span className="font-medium">
                Attempt {number}:{" "}
                {responseStatus === undefined ? (errorText(error) ?? "running") : `HTTP ${responseStatus}`}
              </span>
              <span className="text-faint">
                {startedAt && new Date(timestampMs(startedAt)).toLocaleTimeString()}, {durationMs} ms
              </span>
            </p>
            {responseBody !== undefined && responseBody !== "" && (
              <Code text={responseBody} label="the start of the answer" className="mt-2" />
            )}
          </li>
        ))}
      </ol>
      <div className="mt-3">
        <ProblemNotice problem={replay.problem ?? test.problem} />
      </div>
      <Actions>
        <Button onClick={onClose}>Close</Button>
        {/* The service replays no tests. */}
        {eventType === testType ? (
          <Button kind="primary" isPending={test.isPending} onClick={() => test.run({ id: endpointId })}>
            Send another test
          </Button>
        ) : (
          <Button kind="primary" isPending={replay.isPending} onClick={() => replay.run({ id })}>
            Send again
          </Button>
        )}
      </Actions>
    </Dialog>
  );
}
