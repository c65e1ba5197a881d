import { me } from "../account-api/feature.ts";
import { llm } from "../agents/llm/feature.ts";
import { recipes } from "../agents/recipes/feature.ts";
import { agentInput, agentSessions, agentViews } from "../agents/sessions/feature.ts";
import { agentTurns } from "../agents/turns/feature.ts";
import { auditFeature } from "../audit/feature.ts";
import { credentials } from "../auth/credentials/feature.ts";
import { auth } from "../auth/feature.ts";
import { logins } from "../auth/logins/feature.ts";
import { mfa } from "../auth/mfa/feature.ts";
import { oauth } from "../auth/oauth/feature.ts";
import { billing } from "../billing/feature.ts";
import { cryptoOrders } from "../billing/order-feature.ts";
import { deletion } from "../deletion/feature.ts";
import { events } from "../events/feature.ts";
import { transcript } from "../events/transcript-feature.ts";
import { fleet } from "../fleet/feature.ts";
import { apiKeys } from "../identity/api-keys/feature.ts";
import { throttles } from "../identity/throttle-feature.ts";
import { idempotency } from "../jobs/idempotency/feature.ts";
import type { Feature } from "../kernel/feature.ts";
import { legal } from "../legal/feature.ts";
import { limits } from "../limits/feature.ts";
import { live } from "../live/feature.ts";
import { mail } from "../mail/feature.ts";
import { profiles } from "../profiles/feature.ts";
import { archetypeFeature } from "../sessions/archetypes/feature.ts";
import { connectTickets } from "../sessions/connect/feature.ts";
import { control } from "../sessions/control/feature.ts";
import { sessions } from "../sessions/feature.ts";
import { files } from "../sessions/files/feature.ts";
import { sessionLogs } from "../sessions/logs/feature.ts";
import { viewLinks } from "../sessions/view-links/feature.ts";
import { status } from "../status/feature.ts";
import { teams } from "../teams/feature.ts";
import { webhooks } from "../webhooks/feature.ts";
import type { AppParts } from "./app-parts.ts";

/** All features. A new feature needs its proto, its folder and a line here. */
export const features: readonly Feature<AppParts>[] = [
  apiKeys,
  archetypeFeature,
  auditFeature,
  events,
  idempotency,
  mail,
  throttles,
  logins,
  auth,
  mfa,
  legal,
  oauth,
  teams,
  credentials,
  fleet,
  limits,
  sessions,
  connectTickets,
  control,
  llm,
  recipes,
  agentSessions,
  agentInput,
  transcript,
  agentTurns,
  agentViews,
  profiles,
  files,
  sessionLogs,
  webhooks,
  viewLinks,
  live,
  status,
  me,
  billing,
  cryptoOrders,
  deletion,
];
