import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { listMemberships } from "../accounts/memberships.ts";
import { readLogLevel, type StoredLogLevel, saveLogLevel, toLogLevel, toStoredLogLevel } from "../accounts/settings.ts";
import { findAccount, renameAccount } from "../accounts/store.ts";
import { findUser, renameUser, type UserRow } from "../accounts/users.ts";
import {
  type AccountService,
  AccountSettingsSchema,
  type EmailPreferences,
  EmailPreferencesSchema,
  type UpdateAccountSettingsRequest,
  type UpdateEmailPreferencesRequest,
  type UpdateMeRequest,
} from "../gen/pilothouse/v1/account_pb.ts";
import type { Call, LegalTerms, Principal } from "../kernel/call.ts";
import type { ServiceImplementation } from "../kernel/registry.ts";
import { readPreferences, type StoredPreferences, savePreferences } from "../mail/preferences.ts";
import { fail, failFields } from "../platform/errors.ts";
import { type AccountWatchParts, createAccountWatch } from "./account-watch.ts";
import { toMeMessage } from "./me-message.ts";
import { type QuotaParts, readQuotas } from "./quotas.ts";

export interface AccountServiceParts extends QuotaParts, AccountWatchParts {
  readonly legal: LegalTerms;
}

const forbidden = (detail: string) => fail("forbidden", {}, { detail });

/** Returns the changes that the mask of an update names. Throws `forbidden` or `validation-failed`. */
function readChanges({ updateMask, name, accountName }: UpdateMeRequest, { userId, role }: Principal) {
  const paths = new Set(updateMask?.paths);
  if (paths.has("name") && userId === undefined)
    throw forbidden("the key does not belong to a user, so there is no name to change");
  if (paths.has("account_name") && role === "member") throw forbidden("only owners and admins can rename the account");
  if (paths.has("name") && name === undefined) throw failFields("validation-failed", { name: "cannot be cleared" });
  if (paths.has("account_name") && accountName === undefined)
    throw failFields("validation-failed", { account_name: "cannot be cleared" });
  return {
    ...(userId !== undefined && name !== undefined && paths.has("name") && { user: { id: userId, name } }),
    ...(accountName !== undefined && paths.has("account_name") && { accountName }),
    changed: [...paths],
  };
}

function toPreferencesMessage({ email }: UserRow, kept: StoredPreferences): EmailPreferences {
  return create(EmailPreferencesSchema, {
    email,
    productUpdates: kept.product_updates,
    usageAlerts: kept.usage_alerts,
    webhookFailures: kept.webhook_failures,
    teamActivity: kept.team_activity,
    ...(kept.updated_at && { updatedAt: timestampFromDate(kept.updated_at) }),
  });
}

const toSettingsMessage = (level: StoredLogLevel) => create(AccountSettingsSchema, { logs: toLogLevel(level) });

export function createAccountService(parts: AccountServiceParts): ServiceImplementation<typeof AccountService> {
  const { db, clock, legal } = parts;

  async function getMe({ principal }: Pick<Call, "principal">) {
    const { accountId, userId } = principal;
    const account = await findAccount(db, accountId);
    const [quotas, user, memberships, outstanding] = await Promise.all([
      readQuotas(parts, account),
      userId === undefined ? undefined : findUser(db, userId),
      // Other memberships of a key's creator are not disclosed.
      principal.kind === "login" ? listMemberships(db, principal.userId) : [],
      legal.outstanding(accountId),
    ]);
    return toMeMessage({ principal, account, quotas, user, memberships, outstanding, now: clock.now() });
  }

  /** Returns the user of a principal. Throws `not-found` for a key without a user. */
  async function userOf({ userId }: Principal): Promise<UserRow> {
    const user = userId === undefined ? undefined : await findUser(db, userId);
    if (!user)
      throw fail("not-found", {}, { detail: "the key does not belong to a user, so there are no e-mail preferences" });
    return user;
  }

  async function updatePreferences(call: Call, request: UpdateEmailPreferencesRequest) {
    const user = await userOf(call.principal);
    const at = new Date(clock.now());
    return db.transaction(async (tx) => {
      const before = await readPreferences(tx, user.id);
      const preferences = {
        product_updates: request.productUpdates ?? before.product_updates,
        usage_alerts: request.usageAlerts ?? before.usage_alerts,
        webhook_failures: request.webhookFailures ?? before.webhook_failures,
        team_activity: request.teamActivity ?? before.team_activity,
      };
      await savePreferences(tx, user.id, preferences, at);
      call.audit(tx, { subject: user.id, data: preferences });
      return toPreferencesMessage(user, { ...preferences, updated_at: at });
    });
  }

  async function updateSettings(call: Call, { logs, updateMask }: UpdateAccountSettingsRequest) {
    const { accountId, role } = call.principal;
    if (role === "member") throw forbidden("only owners and admins can change the settings of the account");
    if (!updateMask?.paths.includes("logs")) {
      call.markUnchanged();
      return toSettingsMessage(await readLogLevel(db, accountId));
    }
    const level = toStoredLogLevel(logs);
    if (level === undefined) throw failFields("validation-failed", { logs: "must be off, errors or full" });
    await db.transaction(async (tx) => {
      await saveLogLevel(tx, accountId, level);
      call.audit(tx, { subject: accountId, data: { logs: level } });
    });
    return toSettingsMessage(level);
  }

  return {
    getMe,
    getSettings: async ({ principal }) => toSettingsMessage(await readLogLevel(db, principal.accountId)),
    updateSettings,
    async updateMe(call, request) {
      const { user, accountName, changed } = readChanges(request, call.principal);
      const { accountId } = call.principal;
      if (changed.length === 0) call.markUnchanged();
      else
        await db.transaction(async (tx) => {
          if (user) await renameUser(tx, user.id, user.name);
          if (accountName !== undefined) await renameAccount(tx, accountId, accountName);
          call.audit(tx, { subject: accountId, data: { changed } });
        });
      return getMe(call);
    },
    async getEmailPreferences({ principal }) {
      const user = await userOf(principal);
      return toPreferencesMessage(user, await readPreferences(db, user.id));
    },
    updateEmailPreferences: updatePreferences,
    watch: createAccountWatch(parts),
  };
}
