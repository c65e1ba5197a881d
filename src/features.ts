import { agentSessions } from "./agent-sessions/feature.ts";
import { agentInput } from "./agent-sessions/input-feature.ts";
import { agentViews } from "./agent-sessions/view-feature.ts";
import { agentTurns } from "./agent-turns/feature.ts";
import { apiKeys } from "./api-keys/feature.ts";
import type { AppParts } from "./app.ts";
import { archetypes } from "./archetypes/feature.ts";
import { audit } from "./audit/feature.ts";
import { auth } from "./auth/feature.ts";
import { billing } from "./billing/feature.ts";
import { cryptoOrders } from "./billing/order-feature.ts";
import { brakes } from "./brakes/feature.ts";
import { control } from "./control/feature.ts";
import { credentials } from "./credentials/feature.ts";
import { deletion } from "./deletion/feature.ts";
import { events } from "./events/feature.ts";
import type { Feature } from "./feature.ts";
import { files } from "./files/feature.ts";
import { fleet } from "./fleet/feature.ts";
import { idempotency } from "./idempotency/feature.ts";
import { legal } from "./legal/feature.ts";
import { limits } from "./limits/feature.ts";
import { live } from "./live/feature.ts";
import { llm } from "./llm/feature.ts";
import { logins } from "./logins/feature.ts";
import { mail } from "./mail/feature.ts";
import { me } from "./me/feature.ts";
import { mfa } from "./mfa/feature.ts";
import { oauth } from "./oauth/feature.ts";
import { profiles } from "./profiles/feature.ts";
import { recipes } from "./recipes/feature.ts";
import { sessions } from "./sessions/feature.ts";
import { status } from "./status/feature.ts";
import { teams } from "./teams/feature.ts";
import { transcript } from "./transcript/feature.ts";
import { viewLinks } from "./view-links/feature.ts";
import { webhooks } from "./webhooks/feature.ts";

/** All features. A new one is its proto, its folder, and its line here. */
export const features: readonly Feature<AppParts>[] = [
  apiKeys,
  archetypes,
  audit,
  events,
  idempotency,
  mail,
  brakes,
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
  webhooks,
  viewLinks,
  live,
  status,
  me,
  billing,
  cryptoOrders,
  deletion,
];
