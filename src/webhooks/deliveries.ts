import { type ShownEvent, toEventMessage } from "../events/event-message.ts";
import { EventSchema } from "../gen/pilothouse/v1/common_pb.ts";
import { defineJob, type Job, type JobKind, PermanentFailure, type Settlement } from "../kernel/job-kind.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { compileWriter } from "../platform/rest-json/writer.ts";
import type { DeliveryNotices } from "./delivery-notices.ts";
import { type DeliveryJob, deliveryJob } from "./delivery-queue.ts";
import { giveUp, recordAttempt, recordEndpointFailure, recordEndpointSuccess } from "./delivery-settlement.ts";
import { type DeliveryToSend, readDeliveryToSend } from "./delivery-store.ts";
import { openSecrets } from "./endpoint-secrets.ts";
import { inactiveReason } from "./endpoint-store.ts";
import type { DeliveryResponse, Sender } from "./sender.ts";
import type { StoredAttempt } from "./tables.ts";

const minute = 60_000;

/** Milliseconds before attempts 2 to 6, from the end of the previous attempt. */
const schedule = [1, 5, 15, 30, 60].map((minutes) => minutes * minute);

/**
 * Maximum concurrent deliveries per endpoint. More than 1, so that a slow endpoint does not receive its events one by
 * one.
 */
const width = 8;

/** Timeout of a job in milliseconds, longer than the sender's own timeout of 15 s. */
const timeout = 20_000;

export interface DeliveriesParts extends Pick<PlatformParts, "db" | "clock" | "sealer"> {
  readonly sender: Sender;
  readonly notices: DeliveryNotices;
}

/** A delivery with an existing endpoint and event. */
interface Sendable extends DeliveryToSend {
  readonly url: string;
  readonly secret: Buffer;
  readonly data: NonNullable<DeliveryToSend["data"]>;
  readonly event_created_at: Date;
}

/** Returns the reason why a delivery cannot be sent; undefined if there is none. */
function obstacleTo({ active, data }: DeliveryToSend): string | undefined {
  return inactiveReason(active) ?? (data === null ? "event_expired" : undefined);
}

const nothing: Settlement = { write: () => undefined };

export function createDeliveries({ db, clock, sealer, sender, notices }: DeliveriesParts): JobKind<DeliveryJob> {
  async function send(delivery: Sendable, signal: AbortSignal): Promise<DeliveryResponse> {
    const { url, event_id: id, event_type: type, event_created_at: createdAt, data } = delivery;
    const body = writeEnvelope({ id, type, createdAt, data });
    const now = clock.now();
    const secrets = openSecrets(sealer, delivery, now);
    if (secrets.length === 0) return { startedAt: new Date(now), durationMs: 0, error: "secret_unreadable" };
    return sender.send({ url, secrets, event: { id, type, createdAt, body } }, signal);
  }

  /**
   * Returns what to record after an attempt. A test has a single attempt, and does not affect the failure counts of its
   * endpoint.
   */
  function settlementOf(delivery: DeliveryToSend, number: number, answer: DeliveryResponse): Settlement {
    const { id, endpoint_id: endpointId, is_test: isTest } = delivery;
    const { status = 0, error } = answer;
    const attempt = toStoredAttempt(number, answer);
    const at = new Date(clock.now());
    if (status >= 200 && status < 300)
      return {
        write(tx) {
          if (!isTest) recordEndpointSuccess(tx, endpointId);
          recordAttempt(tx, id, { attempt, status: "delivered", at });
        },
      };
    const message = error ?? `responded with ${status}`;
    return {
      failure: isTest ? new PermanentFailure(message) : new Error(message),
      write(tx, next) {
        if (!isTest) recordEndpointFailure(tx, endpointId, { at, isFirst: number === 1 });
        recordAttempt(tx, id, { attempt, status: next ? "failed" : "dlq", at, next });
      },
    };
  }

  async function run({ data, attempt }: Job<DeliveryJob>, signal: AbortSignal): Promise<Settlement> {
    const delivery = await readDeliveryToSend(db, data.deliveryId);
    // The delivery was deleted, given up or replayed, or settled by another run of this job.
    if (!delivery || delivery.status === "delivered" || delivery.status === "dlq") return nothing;
    const obstacle = obstacleTo(delivery);
    const settlement = obstacle
      ? { failure: new PermanentFailure(obstacle), write: (tx: Tx) => giveUp(tx, [delivery.id], obstacle) }
      : // Cast: the checks above exclude null columns of the join.
        settlementOf(delivery, attempt, await send(delivery as Sendable, signal));
    return {
      ...settlement,
      write(tx, next) {
        settlement.write(tx, next);
        notices.publish(tx, { accountId: delivery.account_id, endpointId: delivery.endpoint_id });
      },
    };
  }

  return defineJob({ ...deliveryJob, width, schedule, timeout, run });
}

function toStoredAttempt(
  number: number,
  { startedAt, durationMs, status, body, error }: DeliveryResponse,
): StoredAttempt {
  return {
    number,
    started_at: startedAt.toISOString(),
    duration_ms: durationMs,
    ...(status !== undefined && { response_status: status }),
    ...(body !== undefined && { response_body: body }),
    ...(error !== undefined && { error }),
  };
}

const write = compileWriter(EventSchema);

/** Creates the body of a delivery: the event as in `GET /v1/events`. */
export function writeEnvelope(event: ShownEvent): string {
  return JSON.stringify(write(toEventMessage(event)));
}
