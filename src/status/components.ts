/** Components of the service, in display order. */
export const componentNames = ["api", "sessions", "agent_sessions", "live_view", "webhooks", "billing"] as const;

export type ComponentName = (typeof componentNames)[number];

/** Display names of components. */
export const componentLabels: Readonly<Record<ComponentName, string>> = {
  api: "API",
  sessions: "Sessions",
  agent_sessions: "Agent sessions",
  live_view: "Live view",
  webhooks: "Webhooks",
  billing: "Billing",
};

/** Health values from best to worst. Maintenance is not a fault. */
export const healths = ["operational", "maintenance", "degraded", "partial_outage", "major_outage"] as const;

export type Health = (typeof healths)[number];

/** Health values in texts for people. */
export const healthWords: Readonly<Record<Health, string>> = {
  operational: "operational",
  maintenance: "under maintenance",
  degraded: "slow, or failing at times",
  partial_outage: "down for some users",
  major_outage: "down for all users",
};

/** Returns whether `one` is worse than `other`. */
export const isWorse = (one: Health, other: Health): boolean => healths.indexOf(one) > healths.indexOf(other);

/** Returns the worst value, or operational for an empty list. */
export const worstOf = (all: readonly Health[]): Health =>
  all.reduce<Health>((worst, each) => (isWorse(each, worst) ? each : worst), "operational");

/** Returns whether the health counts as downtime. */
export const isDown = (health: Health): boolean => health === "partial_outage" || health === "major_outage";

export const isComponentName = (name: string): name is ComponentName => componentNames.some((known) => known === name);
