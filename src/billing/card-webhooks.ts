import type Stripe from "stripe";
import type { JobQueues } from "../jobs/job-queues.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { type CardJob, cardJob } from "./card-sync.ts";
import type { CardProcessor, ProcessorWebhook } from "./processors.ts";
import { findOwner, saveProcessorWebhook } from "./store.ts";

/** Maximum age of a signature in seconds. */
const toleranceSeconds = 300;

/** Maximum characters of an identifier in a webhook. */
const longestId = 255;

export interface CardWebhookParts extends Pick<PlatformParts, "db" | "clock"> {
  readonly jobQueues: JobQueues;
}

const textOf = (object: object, name: string): string => {
  const value: unknown = Reflect.get(object, name);
  return typeof value === "string" && value.length <= longestId ? value : "";
};

/** Returns the event of a webhook; undefined if the body is malformed, or its signature is invalid or too old. */
function verifyEvent(card: CardProcessor, { headers, body }: ProcessorWebhook, now: number): Stripe.Event | undefined {
  const signature = headers["stripe-signature"];
  if (typeof signature !== "string") return undefined;
  try {
    return card.client.webhooks.constructEvent(body, signature, card.webhookSecret, toleranceSeconds, undefined, now);
  } catch {
    return undefined;
  }
}

/**
 * Handles a webhook of the card processor by scheduling a sync of its customer. The sync fetches the current state, so
 * webhooks may arrive late, repeatedly or in any order. Returns false if the signature or the body is invalid.
 */
export async function handleCardWebhook(
  { db, clock, jobQueues }: CardWebhookParts,
  card: CardProcessor,
  notice: ProcessorWebhook,
): Promise<boolean> {
  const event = verifyEvent(card, notice, clock.now());
  const object: unknown = event?.data?.object;
  if (!event || typeof object !== "object" || object === null) return false;
  const isDispute = textOf(object, "object") === "dispute";
  const isCharge = textOf(object, "object") === "charge";
  const charge = isCharge ? textOf(object, "id") : isDispute ? textOf(object, "charge") : "";
  const named = textOf(object, "customer");
  // A dispute names only its charge, which names the customer.
  const subject = named || (isDispute ? ((await card.client.charges.retrieve(charge)).customer ?? "") : "");
  const customer = typeof subject === "string" ? await findOwner(db, subject, card.isSandbox) : undefined;
  const id = typeof event.id === "string" ? event.id.slice(0, longestId) : "";
  // Unknown customers are ignored: several applications may share the processor account.
  if (!customer || id === "") return true;
  const kind = String(event.type).slice(0, longestId);
  await db.transaction(async (tx) => {
    const record = { id, processor: "stripe", kind, subject: customer.id, now: new Date(clock.now()) };
    if (!(await saveProcessorWebhook(tx, record))) return;
    const data: CardJob = charge === "" ? {} : { charge };
    jobQueues.enqueue(tx, cardJob, { queue: customer.id, data });
  });
  return true;
}
