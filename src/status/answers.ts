import type { ComponentName } from "./components.ts";
import type { Sources } from "./sources.ts";

/** Services that are a component of their own; all others are the API. */
const components: Readonly<Record<string, ComponentName>> = {
  AgentSessionService: "agent_sessions",
  AgentInputService: "agent_sessions",
  AgentTurnService: "agent_sessions",
  AgentViewService: "agent_sessions",
  LiveService: "live_view",
  ViewLinkService: "live_view",
};

/** Those that need a payment processor, where there is one. */
const billing: typeof components = { BillingService: "billing", CryptoOrderService: "billing" };

/** Has the answers of all services counted: what fails by a fault of ours, and whose calls those were. */
export function noteAnswers(
  sources: Sources,
  takesPayments: boolean,
): (service: string, failed: boolean, accountId?: string) => void {
  const own = Object.entries({ ...components, ...(takesPayments && billing) });
  const tallies = new Map(own.map(([service, name]) => [service, sources.tally(name)]));
  const api = sources.tally("api");
  return (service, failed, accountId) => (tallies.get(service) ?? api).note(failed, accountId);
}
