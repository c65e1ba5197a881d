import type { RevocationParts } from "../identity/api-keys/revocation.ts";
import type { Throttles } from "../identity/throttle.ts";
import type { AuditLog } from "../kernel/call.ts";
import type { Terms } from "../legal/terms.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { Config } from "../platform/config.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Invites } from "../teams/invites.ts";
import type { LinkRequests } from "./link-requests.ts";
import type { Logins } from "./logins/logins.ts";
import type { ProvePassword } from "./passwords/password-proof.ts";
import type { Passwords } from "./passwords/passwords.ts";

export interface AuthServiceParts extends RevocationParts, Pick<PlatformParts, "db" | "ids"> {
  readonly config: Pick<Config, "signup">;
  readonly throttles: Throttles;
  readonly passwords: Passwords;
  readonly provePassword: ProvePassword;
  readonly logins: Logins;
  readonly linkRequests: LinkRequests;
  readonly mailer: Mailer;
  readonly audit: AuditLog;
  readonly invites: Invites;
  readonly legal: Terms;
}
