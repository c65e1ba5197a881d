import { accountMigrations } from "../accounts/tables.ts";
import { llmMigrations } from "../agents/llm/tables.ts";
import { recipeMigrations } from "../agents/recipes/tables.ts";
import { agentSessionMigrations } from "../agents/sessions/tables.ts";
import { turnMigrations } from "../agents/turns/tables.ts";
import { auditMigrations } from "../audit/tables.ts";
import { loginMigrations } from "../auth/logins/tables.ts";
import { mfaMigrations } from "../auth/mfa/tables.ts";
import { oauthMigrations } from "../auth/oauth/tables.ts";
import { authMigrations } from "../auth/tables.ts";
import { orderMigrations } from "../billing/order-tables.ts";
import { sandboxMigrations } from "../billing/sandbox/sandbox-store.ts";
import { billingMigrations } from "../billing/tables.ts";
import { eventMigrations } from "../events/tables.ts";
import { transcriptMigrations } from "../events/transcript-tables.ts";
import { fleetMigrations } from "../fleet/tables.ts";
import { keyMigrations } from "../identity/api-keys/tables.ts";
import { throttleMigrations } from "../identity/throttle-tables.ts";
import { idempotencyMigrations } from "../jobs/idempotency/tables.ts";
import { jobMigrations } from "../jobs/tables.ts";
import { legalMigrations } from "../legal/tables.ts";
import { limitsMigrations } from "../limits/tables.ts";
import { mailMigrations } from "../mail/tables.ts";
import { appNowMigrations } from "../platform/postgres/app-now.ts";
import type { Migrations } from "../platform/postgres/schema.ts";
import { secretsMigrations } from "../platform/secrets/known-keys.ts";
import { profileMigrations } from "../profiles/tables.ts";
import { fetchMigrations } from "../sessions/fetch/tables.ts";
import { fileLinkMigrations } from "../sessions/files/tables.ts";
import { sessionLogMigrations } from "../sessions/logs/tables.ts";
import { sessionMigrations } from "../sessions/tables.ts";
import { viewLinkMigrations } from "../sessions/view-links/tables.ts";
import { statusMigrations } from "../status/tables.ts";
import { teamMigrations } from "../teams/tables.ts";
import { webhookMigrations } from "../webhooks/tables.ts";

/** Migrations of all folders with tables. Separate from the features, which the control process does not load. */
const lists: readonly Migrations[] = [
  appNowMigrations,
  secretsMigrations,
  accountMigrations,
  keyMigrations,
  oauthMigrations,
  fleetMigrations,
  sessionMigrations,
  fileLinkMigrations,
  sessionLogMigrations,
  fetchMigrations,
  viewLinkMigrations,
  eventMigrations,
  idempotencyMigrations,
  jobMigrations,
  auditMigrations,
  throttleMigrations,
  loginMigrations,
  authMigrations,
  mfaMigrations,
  mailMigrations,
  teamMigrations,
  legalMigrations,
  limitsMigrations,
  billingMigrations,
  orderMigrations,
  sandboxMigrations,
  profileMigrations,
  webhookMigrations,
  statusMigrations,
  llmMigrations,
  recipeMigrations,
  agentSessionMigrations,
  turnMigrations,
  transcriptMigrations,
];

/** Statements of all migrations by name. */
export const migrations: Migrations = collect();

function collect(): Migrations {
  const all: Record<string, readonly string[]> = {};
  for (const [name, statements] of lists.flatMap((list) => Object.entries(list))) {
    if (all[name]) throw new Error(`two folders have a migration ${name}`);
    all[name] = statements;
  }
  return all;
}
