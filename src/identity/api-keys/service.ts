import { create } from "@bufbuild/protobuf";
import { EmptySchema, timestampDate, timestampFromDate, timestampMs } from "@bufbuild/protobuf/wkt";
import { lockAccount } from "../../accounts/store.ts";
import type { EventLog } from "../../events/event-log.ts";
import {
  type ApiKeyService,
  type CreateApiKeyRequest,
  ListApiKeysResponseSchema,
  RotateApiKeyResponseSchema,
} from "../../gen/pilothouse/v1/api_key_pb.ts";
import type { Call } from "../../kernel/call.ts";
import type { ServiceImplementation } from "../../kernel/registry.ts";
import type { Limits } from "../../limits/limits.ts";
import { counted } from "../../platform/counted.ts";
import { fail, failFields } from "../../platform/errors.ts";
import { idPattern } from "../../platform/ids.ts";
import { cutPage, readCursor } from "../../platform/list-page.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import { hashSecret } from "../../platform/secrets/secrets.ts";
import { assertNetworks } from "./address-list.ts";
import type { ApiKeys } from "./api-keys.ts";
import { authorizeGrant, type Grantor } from "./grants.ts";
import { keyPrefixOf, keyStatusOf, toApiKeyMessage, toKeyStatus } from "./key-message.ts";
import { revokeWithEvent } from "./revocation.ts";
import { allScopes } from "./scopes.ts";
import { type ApiKeyRow, countKeys, insertKey, listKeys, lockKey, type NewKey, retireKey } from "./store.ts";
import { newKeySecret, writeToken } from "./token.ts";

export interface ApiKeyServiceParts extends Pick<PlatformParts, "db" | "clock"> {
  readonly events: EventLog;
  readonly limits: Limits;
  readonly apiKeys: ApiKeys;
}

const defaultPage = 20;

/** Milliseconds for which a rotated key stays valid, unless the key expires earlier. */
const graceMs = 24 * 3_600_000;

const keyId = idPattern("key");

/** Returns scopes, expiry and addresses of a new key. Omitted fields default to those of the creator. */
function readBounds({ scopes, expiresAt, addresses }: CreateApiKeyRequest, creator: Grantor) {
  const wanted = scopes.length > 0 ? scopes : creator.scopes;
  return {
    scopes: allScopes.filter((scope) => wanted.includes(scope)),
    expiresAt: expiresAt ? timestampDate(expiresAt) : creator.expiresAt,
    addresses: addresses.length > 0 ? addresses : creator.addresses,
  };
}

/** Locks and returns a key. Throws `not-found`, or `forbidden` if a member did not create the key. */
async function findOwn(tx: Tx, { principal }: Call, id: string): Promise<ApiKeyRow> {
  const row = keyId.test(id) ? await lockKey(tx, id, principal.accountId) : undefined;
  if (!row) throw fail("not-found", {}, { detail: "no key has this id" });
  if (principal.role === "member" && row.created_by !== principal.userId)
    throw fail(
      "forbidden",
      {},
      { detail: "members can rotate and revoke only their own keys: ask an owner or an admin" },
    );
  return row;
}

export function createApiKeyService(parts: ApiKeyServiceParts): ServiceImplementation<typeof ApiKeyService> {
  const { db, clock, limits } = parts;

  /** Inserts a key with a new secret, and returns its row and token. */
  async function makeKey(tx: Tx, key: Omit<NewKey, "secretHash" | "createdAt">) {
    const secret = newKeySecret();
    const row = await insertKey(tx, { ...key, secretHash: hashSecret(secret), createdAt: new Date(clock.now()) });
    if (!row) throw new Error(`a key ${key.id} already exists`);
    return { row, token: writeToken({ id: key.id, secret }) };
  }

  async function assertBelowLimit(tx: Tx, accountId: string): Promise<void> {
    const account = await lockAccount(tx, accountId);
    const { apiKeys: limit, name: tier } = limits.of(account);
    const count = await countKeys(tx, accountId, new Date(clock.now()));
    if (count < limit) return;
    const detail = `the account has ${counted(count, "key")}, the maximum on tier ${tier}: revoke one first`;
    throw fail("tier-limit", { current_api_keys: count, limit }, { detail });
  }

  return {
    async create(call, request) {
      assertNetworks(request.addresses);
      if (request.expiresAt && timestampMs(request.expiresAt) <= clock.now())
        throw failFields("validation-failed", { expires_at: "must be in the future" });
      const { accountId } = call.principal;
      const id = call.ids.next("key");
      return call.commit(async (tx) => {
        await assertBelowLimit(tx, accountId);
        const { name } = request;
        const creator = await authorizeGrant(tx, call.principal, (grantor) => readBounds(request, grantor));
        const bounds = readBounds(request, creator);
        const { row, token } = await makeKey(tx, { id, accountId, name, creator, ...bounds });
        call.audit(tx, { subject: id, data: { name, ...auditedBounds(bounds) } });
        return { ...toApiKeyMessage(row, clock.now()), key: token };
      });
    },

    async list({ principal }, { limit = defaultPage, cursor, status }) {
      const now = clock.now();
      const query = {
        accountId: principal.accountId,
        status: toKeyStatus(status),
        before: readCursor(cursor, keyId),
        now: new Date(now),
      };
      const { rows, position } = cutPage(await listKeys(db, { ...query, limit: limit + 1 }), limit);
      return create(ListApiKeysResponseSchema, { data: rows.map((row) => toApiKeyMessage(row, now)), ...position });
    },

    async rotate(call, { id: oldId }) {
      const id = call.ids.next("key");
      return call.commit(async (tx) => {
        const old = await findOwn(tx, call, oldId);
        const now = clock.now();
        const status = keyStatusOf(old, now);
        if (status !== "active")
          throw fail(
            "conflict",
            {},
            { detail: `the key is ${status === "expiring" ? "already rotated" : status}: rotate an active key` },
          );
        const { account_id: accountId, name, scopes, addresses, expires_at: expiresAt } = old;
        const bounds = { scopes, addresses, expiresAt };
        const creator = await authorizeGrant(tx, call.principal, bounds);
        const { row, token } = await makeKey(tx, { id, accountId, name, creator, ...bounds });
        const graceEnds = new Date(Math.min(now + graceMs, expiresAt?.getTime() ?? Number.POSITIVE_INFINITY));
        await retireKey(tx, oldId, { id, graceEnds });
        // Makes gateways reload the old key with its new expiry.
        parts.apiKeys.publishChange(tx, oldId);
        call.audit(tx, { subject: oldId, data: { name, new_key_id: id } });
        return create(RotateApiKeyResponseSchema, {
          id,
          name,
          key: token,
          keyPrefix: keyPrefixOf(id),
          scopes: row.scopes,
          prevKeyId: oldId,
          prevKeyPrefix: keyPrefixOf(oldId),
          graceExpiresAt: timestampFromDate(graceEnds),
        });
      });
    },

    async revoke(call, { id }) {
      await db.transaction(async (tx) => {
        const row = await findOwn(tx, call, id);
        const isRevoked = await revokeWithEvent(parts, tx, row, principalId(call));
        if (isRevoked) call.audit(tx, { subject: id, data: { name: row.name } });
        else call.markUnchanged();
      });
      return create(EmptySchema);
    },
  };
}

function principalId({ principal }: Call): string {
  return principal.kind === "key" ? principal.keyId : principal.userId;
}

/** Formats the bounds of a new key for the audit log. */
function auditedBounds({ scopes, expiresAt, addresses }: ReturnType<typeof readBounds>) {
  return {
    scopes,
    ...(expiresAt && { expires_at: expiresAt.toISOString() }),
    ...(addresses.length > 0 && { addresses }),
  };
}
