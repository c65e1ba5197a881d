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
