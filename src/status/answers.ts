import type { ComponentName } from "./components.ts";
import type { Sources } from "./sources.ts";

/** Services that are separate components. All others belong to the API. */
const components: Readonly<Record<string, ComponentName>> = {
  AgentSessionService: "agent_sessions",
  AgentInputService: "agent_sessions",
  AgentTurnService: "agent_sessions",
  AgentViewService: "agent_sessions",
  LiveService: "live_view",
  ViewLinkService: "live_view",
};

/** Services that depend on a payment processor, if one is configured. */
const billing: typeof components = { BillingService: "billing", CryptoOrderService: "billing" };

/** Returns the function that counts responses and server faults by component, with the affected accounts. */
export function countResponses(
  sources: Sources,
  takesPayments: boolean,
): (service: string, failed: boolean, accountId?: string) => void {
  const own = Object.entries({ ...components, ...(takesPayments && billing) });
  const tallies = new Map(own.map(([service, name]) => [service, sources.tally(name)]));
  const api = sources.tally("api");
  return (service, failed, accountId) => (tallies.get(service) ?? api).note(failed, accountId);
}
