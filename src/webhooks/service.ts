import { create } from "@bufbuild/protobuf";
import { EmptySchema, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { lockAccount } from "../accounts/store.ts";
import {
  type CreateWebhookRequest,
  ListWebhooksResponseSchema,
  RotateWebhookSecretResponseSchema,
  type UpdateWebhookRequest,
  type WebhookService,
} from "../gen/pilothouse/v1/webhook_pb.ts";
import { authorizeGrant } from "../identity/api-keys/grants.ts";
import type { JobQueues } from "../jobs/job-queues.ts";
import type { Call } from "../kernel/call.ts";
import type { ServiceImplementation } from "../kernel/registry.ts";
import { fail } from "../platform/errors.ts";
import { idPattern } from "../platform/ids.ts";
import { cutPage, readCursor } from "../platform/list-page.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { endDeliveries } from "./closing.ts";
import { createDeliveryMethods } from "./delivery-methods.ts";
import { giveUpOpen } from "./delivery-settlement.ts";
import { readChanges, readEventTypes } from "./endpoint-fields.ts";
import { toEndpointMessage } from "./endpoint-message.ts";
import { graceMs, newEndpointSecret, sealSecret, secretPrefixOf } from "./endpoint-secrets.ts";
import {
  countEndpoints,
  deleteEndpoint,
  type EndpointRow,
  findEndpoint,
  insertEndpoint,
  listEndpoints,
  lockEndpoint,
  noEndpoint,
  updateEndpoint,
} from "./endpoint-store.ts";
import type { Sender } from "./sender.ts";

export interface WebhookServiceParts extends Pick<PlatformParts, "db" | "clock" | "sealer"> {
  readonly jobQueues: JobQueues;
  readonly sender: Pick<Sender, "check">;
}

const defaultPage = 20;

/** Maximum active endpoints, and maximum endpoints, of an account. */
const max = { active: 10, all: 100 };

const endpointId = idPattern("whk");

/** Scope needed to create or update an endpoint, or to rotate its secret. */
const secretGrant = { scopes: ["webhooks:write"] };

export function createWebhookService(parts: WebhookServiceParts): ServiceImplementation<typeof WebhookService> {
  const { db, clock, sealer, jobQueues, sender } = parts;

  /** Locks the account. Throws `tier-limit` if the account has the maximum number of endpoints of one of `kinds`. */
  async function assertBelowLimit(tx: Tx, accountId: string, kinds: readonly (keyof typeof max)[]): Promise<void> {
    await lockAccount(tx, accountId);
    const counts = await countEndpoints(tx, accountId);
    const full = kinds.find((kind) => counts[kind] >= max[kind]);
    if (!full) return;
    const detail = `the account has ${counts[full]} ${full === "active" ? "active webhooks" : "webhooks"}, the maximum: ${full === "active" ? "set active to false on one" : "delete one"} first`;
    throw fail("tier-limit", { current_webhooks: counts[full], limit: max[full] }, { detail });
  }

  async function lockOwn(tx: Tx, { principal }: Call, id: string): Promise<EndpointRow> {
    const row = await lockEndpoint(tx, { id, accountId: principal.accountId });
    if (!row) throw noEndpoint();
    return row;
  }

  async function createEndpoint(call: Call, request: CreateWebhookRequest) {
    const { accountId } = call.principal;
    const { url, description = null } = request;
    const events = readEventTypes(request.events);
    await sender.check(url);
    const id = call.ids.next("whk");
    const secret = newEndpointSecret();
    return call.commit(async (tx) => {
      await authorizeGrant(tx, call.principal, secretGrant);
      await assertBelowLimit(tx, accountId, ["active", "all"]);
      const now = new Date(clock.now());
      const row = await insertEndpoint(tx, {
        id,
        account_id: accountId,
        url,
        events,
        description,
        created_at: now,
        updated_at: now,
        secret: sealSecret(sealer, accountId, secret),
        secret_prefix: secretPrefixOf(secret),
      });
      call.audit(tx, { subject: id, data: { url, events } });
      return { ...toEndpointMessage(row, now.getTime()), secret };
    });
  }

  async function update(call: Call, request: UpdateWebhookRequest) {
    const { accountId } = call.principal;
    const { id } = request;
    const changes = readChanges(request);
    if (changes.url !== undefined) await sender.check(changes.url);
    return db.transaction(async (tx) => {
      await authorizeGrant(tx, call.principal, secretGrant);
      const before = await lockOwn(tx, call, id);
      if (changes.active && !before.active) await assertBelowLimit(tx, accountId, ["active"]);
      const now = new Date(clock.now());
      const resetFailures = changes.active && { consecutive_failures: 0, failing_since: null };
      const row = await updateEndpoint(tx, id, { ...changes, ...resetFailures, updated_at: now });
      const isClosed = before.active && !row.active;
      if (isClosed) {
        giveUpOpen(tx, id, "endpoint_inactive");
        endDeliveries(jobQueues, tx, id);
      }
      call.audit(tx, { subject: id, data: { changed: Object.keys(changes) } });
      // Reread, because the counts changed when open deliveries were given up.
      return toEndpointMessage(isClosed ? await lockOwn(tx, call, id) : row, now.getTime());
    });
  }

  async function rotateSecret(call: Call, id: string) {
    const secret = newEndpointSecret();
    return call.commit(async (tx) => {
      await authorizeGrant(tx, call.principal, secretGrant);
      const row = await lockOwn(tx, call, id);
      const now = clock.now();
      const graceEnds = new Date(now + graceMs);
      await updateEndpoint(tx, id, {
        secret: sealSecret(sealer, row.account_id, secret),
        secret_prefix: secretPrefixOf(secret),
        prev_secret: row.secret,
        prev_secret_prefix: row.secret_prefix,
        grace_expires_at: graceEnds,
        updated_at: new Date(now),
      });
      call.audit(tx, { subject: id, data: { url: row.url } });
      return create(RotateWebhookSecretResponseSchema, {
        id,
        secret,
        secretPrefix: secretPrefixOf(secret),
        prevSecretPrefix: row.secret_prefix,
        graceExpiresAt: timestampFromDate(graceEnds),
      });
    });
  }

  return {
    create: createEndpoint,
    async list({ principal }, { limit = defaultPage, cursor, active }) {
      const query = { accountId: principal.accountId, active, before: readCursor(cursor, endpointId) };
      const { rows, position } = cutPage(await listEndpoints(db, { ...query, limit: limit + 1 }), limit);
      const now = clock.now();
      return create(ListWebhooksResponseSchema, { data: rows.map((row) => toEndpointMessage(row, now)), ...position });
    },
    async get({ principal }, { id }) {
      const row = await findEndpoint(db, { id, accountId: principal.accountId });
      if (!row) throw noEndpoint();
      return toEndpointMessage(row, clock.now());
    },
    update,
    async delete(call, { id }) {
      await db.transaction(async (tx) => {
        const { url } = await lockOwn(tx, call, id);
        await deleteEndpoint(tx, id);
        endDeliveries(jobQueues, tx, id);
        call.audit(tx, { subject: id, data: { url } });
      });
      return create(EmptySchema);
    },
    rotateSecret: (call, { id }) => rotateSecret(call, id),
    ...createDeliveryMethods(parts),
  };
}
