import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type ListWebhookDeliveriesRequest,
  ListWebhookDeliveriesResponseSchema,
  type ReplayFailedDeliveriesRequest,
  ReplayFailedDeliveriesResponseSchema,
  TestPingEventSchema,
  TestWebhookResponseSchema,
} from "../gen/pilothouse/v1/webhook_pb.ts";
import type { JobQueues } from "../jobs/job-queues.ts";
import type { Call } from "../kernel/call.ts";
import { type Failure, fail } from "../platform/errors.ts";
import { eventPayload } from "../platform/event-payload.ts";
import { idPattern, lowestId } from "../platform/ids.ts";
import { cutPage, readCursor } from "../platform/list-page.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { toDeliveryMessage, toDeliveryStatus } from "./delivery-message.ts";
import { queueDeliveries } from "./delivery-queue.ts";
import { giveUp } from "./delivery-settlement.ts";
import {
  type DeliveryRow,
  findDelivery,
  hasEvent,
  listDeliveries,
  type NewDelivery,
  type ReplayedDelivery,
  recordReplay,
  takeFailed,
} from "./delivery-store.ts";
import { type EndpointRow, findEndpoint, lockEndpoint, noEndpoint } from "./endpoint-store.ts";

export interface DeliveryParts extends Pick<PlatformParts, "db" | "clock"> {
  readonly jobQueues: JobQueues;
}

const defaultPage = 20;

/** Maximum deliveries that one call replays. */
const maxReplays = 10_000;

const deliveryId = idPattern("dlv");

const conflict = (detail: string): Failure => fail("conflict", {}, { detail });

export function createDeliveryMethods({ db, clock, jobQueues }: DeliveryParts) {
  /** Locks and returns an endpoint. Throws `not-found`, or `conflict` if the endpoint is not active. */
  async function lockActive(tx: Tx, { principal }: Call, id: string): Promise<EndpointRow> {
    const row = await lockEndpoint(tx, { id, accountId: principal.accountId });
    if (!row) throw noEndpoint();
    if (!row.active) throw conflict("the webhook is not active: set active to true first");
    return row;
  }

  const replayOf = (call: Call, endpointId: string, at: Date, original: ReplayedDelivery): NewDelivery => ({
    id: call.ids.next("dlv"),
    endpointId,
    accountId: call.principal.accountId,
    eventId: original.event_id,
    eventType: original.event_type,
    subject: original.subject,
    createdAt: at,
    replayOf: original.id,
  });

  async function test(call: Call, id: string) {
    return call.commit(async (tx) => {
      const { account_id: accountId } = await lockActive(tx, call, id);
      const ping = create(TestPingEventSchema, { webhookId: id, message: "Hello from Pilothouse." });
      const { type: eventType, data: payload } = eventPayload(TestPingEventSchema, ping);
      const [delivery, eventId] = [call.ids.next("dlv"), call.ids.next("evt")];
      const createdAt = new Date(clock.now());
      const owner = { endpointId: id, accountId, subject: id };
      queueDeliveries(jobQueues, tx, [{ id: delivery, eventId, eventType, payload, createdAt, ...owner }]);
      call.audit(tx, { subject: id, data: { delivery_id: delivery } });
      return create(TestWebhookResponseSchema, { deliveryId: delivery, eventId, eventType });
    });
  }

  async function list({ principal }: Call, request: ListWebhookDeliveriesRequest) {
    const { id, limit = defaultPage, cursor, status, eventType } = request;
    const before = readCursor(cursor, deliveryId);
    const { accountId } = principal;
    if (!(await findEndpoint(db, { id, accountId }))) throw noEndpoint();
    const query = { accountId, endpointId: id, status: toDeliveryStatus(status), eventType, before, limit: limit + 1 };
    const { rows, position } = cutPage(await listDeliveries(db, query), limit);
    return create(ListWebhookDeliveriesResponseSchema, { data: rows.map(toDeliveryMessage), ...position });
  }

  /** Finds a delivery to replay. Throws `not-found`, or `conflict` for a test or an event no longer in the log. */
  async function findReplayable(tx: Tx, { principal }: Call, id: string): Promise<DeliveryRow> {
    const original = await findDelivery(tx, { id, accountId: principal.accountId });
    if (!original) throw fail("not-found", {}, { detail: "no delivery has this id" });
    if (original.is_test) throw conflict("a test cannot be replayed: send another test");
    if (!(await hasEvent(tx, original.event_id)))
      throw conflict("the event is no longer in the event log and cannot be sent again");
    return original;
  }

  async function replay(call: Call, id: string) {
    return call.commit(async (tx) => {
      const original = await findReplayable(tx, call, id);
      const { endpoint_id: endpointId, event_id, status } = original;
      await lockActive(tx, call, endpointId);
      const at = new Date(clock.now());
      const fresh = replayOf(call, endpointId, at, original);
      await recordReplay(tx, id, at);
      // The replay replaces the remaining attempts.
      if (status === "pending" || status === "failed") giveUp(tx, [id], "replayed");
      queueDeliveries(jobQueues, tx, [fresh]);
      call.audit(tx, { subject: fresh.id, data: { replay_of: id, event_id } });
      const row = await findDelivery(tx, fresh);
      if (!row) throw new Error(`the delivery ${fresh.id} was not queued`);
      return toDeliveryMessage(row);
    });
  }

  async function replayFailed(call: Call, { id, since }: ReplayFailedDeliveriesRequest) {
    return call.commit(async (tx) => {
      await lockActive(tx, call, id);
      const at = new Date(clock.now());
      const from = lowestId("dlv", since ? Math.max(0, timestampMs(since)) : 0);
      const taken = await takeFailed(tx, { endpointId: id, from, at, limit: maxReplays });
      queueDeliveries(
        jobQueues,
        tx,
        taken.map((original) => replayOf(call, id, at, original)),
      );
      call.audit(tx, { subject: id, data: { count: taken.length } });
      return create(ReplayFailedDeliveriesResponseSchema, { count: taken.length });
    });
  }

  return {
    test: (call: Call, { id }: { readonly id: string }) => test(call, id),
    listDeliveries: list,
    replayDelivery: (call: Call, { id }: { readonly id: string }) => replay(call, id),
    replayFailedDeliveries: replayFailed,
  };
}
