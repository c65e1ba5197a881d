import { defineService } from "../feature.ts";
import { AgentTurnService } from "../gen/pilothouse/v1/agent_turn_pb.ts";
import type { Database } from "../platform/postgres/database.ts";
import { createAgentTurnService } from "./turn-service.ts";

export const agentTurns = defineService({
  service: AgentTurnService,
  create: (parts: { readonly db: Database }) => ({ methods: createAgentTurnService(parts) }),
});
