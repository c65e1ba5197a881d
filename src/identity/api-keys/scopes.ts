import type { Role } from "../../kernel/role.ts";

/** Resources that scopes cover. */
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

/** Every scope: `<resource>:read` and `<resource>:write`. The default for keys that the operator creates. */
export const allScopes: readonly string[] = resources.flatMap((resource) => [`${resource}:read`, `${resource}:write`]);

/** Scopes that members lack. */
const beyondMembers: ReadonlySet<string> = new Set(["team:write", "billing:write"]);

const memberScopes: ReadonlySet<string> = new Set(allScopes.filter((scope) => !beyondMembers.has(scope)));
const everyScope: ReadonlySet<string> = new Set(allScopes);

/** Scopes granted by a role. */
export function scopesOfRole(role: Role): ReadonlySet<string> {
  // An unknown role, of a later release, has the rights of a member.
  return role === "owner" || role === "admin" ? everyScope : memberScopes;
}
