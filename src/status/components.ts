/** The parts of the service, in the order in which they are shown. */
export const componentNames = ["api", "sessions", "agent_sessions", "live_view", "webhooks", "billing"] as const;

/** One of the parts of the service. */
export type ComponentName = (typeof componentNames)[number];

/** What people call the parts. */
export const componentLabels: Readonly<Record<ComponentName, string>> = {
  api: "API",
  sessions: "Sessions",
  agent_sessions: "Agent sessions",
  live_view: "Live view",
  webhooks: "Webhooks",
  billing: "Billing",
};

/** How something is, from the best to the worst. Maintenance is no fault. */
export const healths = ["operational", "maintenance", "degraded", "partial_outage", "major_outage"] as const;

/** How something is. */
export type Health = (typeof healths)[number];

/** What people read of it. */
export const healthWords: Readonly<Record<Health, string>> = {
  operational: "as it should be",
  maintenance: "under maintenance",
  degraded: "slower, or failing at times",
  partial_outage: "failing for some",
  major_outage: "failing for all",
};

/** Says whether one is worse than the other. */
export const isWorse = (one: Health, other: Health): boolean => healths.indexOf(one) > healths.indexOf(other);

/** The worst of several; operational of none. */
export const worstOf = (all: readonly Health[]): Health =>
  all.reduce<Health>((worst, each) => (isWorse(each, worst) ? each : worst), "operational");

/** Says whether the time counts as down. */
export const isDown = (health: Health): boolean => health === "partial_outage" || health === "major_outage";

export const isComponentName = (name: string): name is ComponentName => componentNames.some((known) => known === name);
