import type { Role } from "../../kernel/role.ts";

/** What keys can be allowed to touch. */
const resources = [
  "sessions",
  "agent_sessions",
  "recipes",
  "profiles",
  "api_keys",
  "webhooks",
  "account",
  "team",
  "billing",
] as const;

/** Every scope: `<resource>:read` and `<resource>:write`. A key that was made without scopes has them all. */
export const allScopes: readonly string[] = resources.flatMap((resource) => [`${resource}:read`, `${resource}:write`]);

/** What a member of an account may not do. */
const beyondMembers: ReadonlySet<string> = new Set(["team:write", "billing:write"]);

const memberScopes: ReadonlySet<string> = new Set(allScopes.filter((scope) => !beyondMembers.has(scope)));
const everyScope: ReadonlySet<string> = new Set(allScopes);

/** The scopes that a person's role in an account gives. */
export function scopesOfRole(role: Role): ReadonlySet<string> {
  return role === "member" ? memberScopes : everyScope;
}
